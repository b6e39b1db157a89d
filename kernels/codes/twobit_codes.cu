#include "kernels/codes/twobit_codes.h"

#include "kernels/team_cuda.cuh"

namespace abtrain::kernels {

int encode_threshold(const EncodeThreshold& job, void* stream) {
  return launch_blocks(job, stream);
}
int pack_sums(const PackSums& job, void* stream) {
  return launch_blocks(job, stream);
}
int average_codes(const AverageCodes& job, void* stream) {
  return launch_blocks(job, stream);
}

}  // namespace abtrain::kernels
