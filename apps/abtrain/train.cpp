#include "base/error.h"
#include "commands.h"

namespace abtrain::app {

int run_train(const TrainArgs&) {
  throw Error(ErrorKind::Usage, "train: not in this build");
}

}  // namespace abtrain::app
