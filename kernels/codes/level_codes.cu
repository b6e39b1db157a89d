#include "kernels/codes/level_codes.h"

#include "kernels/team_cuda.cuh"

namespace abtrain::kernels {

int encode_above(const EncodeAbove& job, void* stream) {
  return launch_blocks(job, stream);
}
int encode_by_chance(const EncodeByChance& job, void* stream) {
  return launch_blocks(job, stream);
}
int average_levels(const AverageLevels& job, void* stream) {
  return launch_blocks(job, stream);
}
int average_byte_levels(const AverageByteLevels& job, void* stream) {
  return launch_blocks(job, stream);
}

}  // namespace abtrain::kernels
