#include "kernels/codes/ternary_codes.h"

#include "kernels/team_cuda.cuh"

namespace abtrain::kernels {

int encode_ternary(const EncodeTernary& job, void* stream) {
  return launch_blocks(job, stream);
}
int pack_sums(const PackSums& job, void* stream) {
  return launch_blocks(job, stream);
}
int average_codes(const AverageCodes& job, void* stream) {
  return launch_blocks(job, stream);
}
int average_records(const AverageRecords& job, void* stream) {
  return launch_blocks(job, stream);
}

}  // namespace abtrain::kernels
