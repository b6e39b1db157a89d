#include "kernels/pair_balance.h"

#include "kernels/code_blocks.cuh"

namespace abtrain::kernels {

namespace {

// Adds the row before row j to the sum, and leaves each block's part of the
// scalar product with row j. Room for kLanes floats.
__global__ void __launch_bounds__(kThreads)
    add_and_multiply(const PairBalance job, int j) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * kBlock;
  float* const sum = job.sum + begin;
  const float* const before = job.rows + (j - 1) * job.numel + begin;
  const float* const row = job.rows + j * job.numel + begin;
  const auto t = static_cast<int>(threadIdx.x);
  const bool add = j > 0;
  const bool multiply = j < job.workers;
  const float sign = add ? static_cast<float>(job.signs[j - 1]) : 0.0f;
  float s[kRounds][kEight], x[kRounds][kEight];
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int i = (r * kThreads + t) * kEight;
    const std::int64_t count = job.numel - begin - i;
    load_eight(sum + i, count, is_wide(sum), s[r]);
    if (add) {
      load_eight(before + i, count, is_wide(before), x[r]);
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        s[r][k] += sign * x[r][k];
      }
      store_eight(sum + i, count, is_wide(sum), s[r]);
    }
    if (multiply) {
      load_eight(row + i, count, is_wide(row), x[r]);
    }
  }
  if (!multiply) {
    return;
  }
  auto* const lanes = reinterpret_cast<float*>(shared_memory());
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    lanes[kEight * t + k] = ::fmaf(s[1][k], x[1][k], s[0][k] * x[0][k]);
  }
  add_by_halves(lanes, kLanes, lanes, 0);
  if (t == 0) {
    job.parts[blockIdx.x] = lanes[0];
  }
}

// Room for kTensorLanes doubles.
__global__ void __launch_bounds__(kTensorLanes)
    choose_sign(const PairBalance job, int j, std::int64_t blocks) {
  auto* const lanes = reinterpret_cast<double*>(shared_memory());
  const auto t = static_cast<int>(threadIdx.x);
  double product = 0;
  for (std::int64_t b = t; b < blocks; b += kTensorLanes) {
    product += static_cast<double>(job.parts[b]);
  }
  lanes[t] = product;
  add_by_halves(lanes, kTensorLanes, lanes, 0);
  if (t == 0) {
    job.signs[j] = lanes[0] <= 0 ? std::int8_t{1} : std::int8_t{-1};
  }
}

}  // namespace

int pair_balance(const PairBalance& job, void* stream) {
  const std::int64_t blocks = (job.numel + kBlock - 1) / kBlock;
  if (blocks == 0 || job.workers == 0) {
    return 0;
  }
  int first = 0;
  for (int j = 0; j <= job.workers; ++j) {
    const int step = launch(
        add_and_multiply,
        blocks,
        kThreads,
        kLanes * sizeof(float),
        stream,
        job,
        j);
    const int chosen = j == job.workers ? 0
                                        : launch(
                                              choose_sign,
                                              1,
                                              kTensorLanes,
                                              kTensorLanes * sizeof(double),
                                              stream,
                                              job,
                                              j,
                                              blocks);
    first = first != 0 ? first : step != 0 ? step : chosen;
  }
  return first;
}

}  // namespace abtrain::kernels
