#include "train/workers/leave.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "run_folder/run_lock.h"

namespace abtrain::train {

void leave(int code) {
  run_folder::release_run_lock();
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace abtrain::train
