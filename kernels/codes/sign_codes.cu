#include "kernels/codes/sign_codes.h"

#include "kernels/team_cuda.cuh"

namespace abtrain::kernels {

int encode_signs(const EncodeSigns& job, void* stream) {
  return launch_blocks(job, stream, /*sums=*/true);
}
int serve_signs(const ServeSigns& job, void* stream) {
  return launch_blocks(job, stream, /*sums=*/true);
}
int decode_signs(const DecodeSigns& job, void* stream) {
  return launch_blocks(job, stream);
}

}  // namespace abtrain::kernels
