// What a test build adds to a run; the program itself adds nothing.
#pragma once

#include "run/trainer.h"

namespace abtrain::app {

run::TrainHooks train_hooks();

}  // namespace abtrain::app
