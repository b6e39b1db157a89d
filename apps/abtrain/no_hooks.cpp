#include "hooks.h"

namespace abtrain::app {

train::TrainHooks train_hooks() {
  return {};
}

}  // namespace abtrain::app
