#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/level_codes_backends.h"

namespace abtrain::ops {

namespace {

template <class Job>
void run(int (*kernel)(const Job&, void*), const Job& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(kernel(job, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace

void sizes_cuda(const kernels::Sizes& job, c10::Device device) {
  run(kernels::sizes, job, device);
}
void encode_above_cuda(const kernels::EncodeAbove& job, c10::Device device) {
  run(kernels::encode_above, job, device);
}
void encode_by_chance_cuda(
    const kernels::EncodeByChance& job,
    c10::Device device) {
  run(kernels::encode_by_chance, job, device);
}
void subtract_levels_cuda(
    const kernels::SubtractLevels& job,
    c10::Device device) {
  run(kernels::subtract_levels, job, device);
}
void average_levels_cuda(
    const kernels::AverageLevels& job,
    c10::Device device) {
  run(kernels::average_levels, job, device);
}
void average_byte_levels_cuda(
    const kernels::AverageByteLevels& job,
    c10::Device device) {
  run(kernels::average_byte_levels, job, device);
}

}  // namespace abtrain::ops
