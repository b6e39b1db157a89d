#include "base/error.h"
#include "commands.h"

namespace abtrain::app {

int run_evaluate(const EvaluateArgs&) {
  throw Error(ErrorKind::Usage, "evaluate: not in this build");
}

}  // namespace abtrain::app
