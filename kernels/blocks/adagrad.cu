#include "kernels/blocks/adagrad.h"

#include "kernels/team_cuda.cuh"

namespace abtrain::kernels {

int adagrad_step(const AdagradStep& job, void* stream) {
  return launch_blocks(job, stream);
}

}  // namespace abtrain::kernels
