// Hooks that a test build adds to a run; the program itself adds none.
#pragma once

#include "train/trainer.h"

namespace abtrain::app {

train::TrainHooks train_hooks();

}  // namespace abtrain::app
