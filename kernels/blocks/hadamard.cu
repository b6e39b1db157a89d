#include "kernels/blocks/hadamard.h"

#include <algorithm>

#include "kernels/elements.cuh"

namespace abtrain::kernels {

namespace {

using Four = Packet<float, 4>;

// Computes kStages stages, with the strides 2^from, 2^(from + 1), ... A thread processes 2^kStages
// packets.
template <int kStages>
__global__ void stage_kernel(float* data, std::int64_t groups, int from) {
  constexpr int kCount = 1 << kStages;
  const std::int64_t group = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (group >= groups) {
    return;
  }
  // Base-2 logarithm of the first stride, counted in packets of four elements.
  const int log_stride = from - 2;
  const std::int64_t low = group & ((std::int64_t{1} << log_stride) - 1);
  Four* const first =
      reinterpret_cast<Four*>(data) + ((group >> log_stride) << (log_stride + kStages)) + low;
  Four x[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    x[i] = first[std::int64_t{i} << log_stride];
  }
#pragma unroll
  for (int stride = 1; stride < kCount; stride *= 2) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if ((i & stride) == 0) {
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          const float a = x[i].values[v];
          const float b = x[i + stride].values[v];
          x[i].values[v] = a + b;
          x[i + stride].values[v] = a - b;
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    first[std::int64_t{i} << log_stride] = x[i];
  }
}

template <int kStages>
int queue_stages(float* x, std::int64_t numel, int from, void* stream) {
  constexpr int kThreads = 128;
  const std::int64_t groups = numel >> (2 + kStages);
  return launch(
      stage_kernel<kStages>, (groups + kThreads - 1) / kThreads, kThreads, 0, stream, x, groups,
      from);
}

}  // namespace

int hadamard_above_tile(float* x, std::int64_t numel, int log_size, void* stream) {
  int status = 0;
  for (int from = kTileLog; from < log_size && status == 0;) {
    const int stages = std::min(log_size - from, 4);
    status = stages == 4   ? queue_stages<4>(x, numel, from, stream)
             : stages == 3 ? queue_stages<3>(x, numel, from, stream)
             : stages == 2 ? queue_stages<2>(x, numel, from, stream)
                           : queue_stages<1>(x, numel, from, stream);
    from += stages;
  }
  return status;
}

}  // namespace abtrain::kernels
