#include "hooks.h"

namespace abtrain::app {

run::TrainHooks train_hooks() {
  return {};
}

}  // namespace abtrain::app
