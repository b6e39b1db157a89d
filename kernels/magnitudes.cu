#include "kernels/magnitudes.h"

#include "kernels/code_blocks.cuh"

namespace abtrain::kernels {

namespace {

constexpr float kLargestFloat = 3.402823466e+38f;

// NaN if either is NaN.
__device__ float larger(float a, float b) {
  return b > a || b != b ? b : a;
}

// Leaves the largest of `count` lanes in the first lane. All threads call it.
__device__ void keep_largest(float* lanes, int count) {
  __syncthreads();
  for (int half = count / 2; half > 0; half /= 2) {
    for (int i = static_cast<int>(threadIdx.x); i < half;
         i += static_cast<int>(blockDim.x)) {
      lanes[i] = larger(lanes[i], lanes[i + half]);
    }
    __syncthreads();
  }
}

// Needs shared memory for kLanes floats per value.
__global__ void __launch_bounds__(kThreads)
    block_magnitudes(const Magnitudes job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const float* const u = job.u + block.begin;
  const bool wide = is_wide(u);
  const auto t = static_cast<int>(threadIdx.x);
  float x[kRounds][kEight];
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int i = (r * kThreads + t) * kEight;
    load_eight(u + i, block.count - i, wide, x[r]);
  }
  const bool largest = job.statistic == Statistic::Largest;
  const bool squares = job.statistic == Statistic::Moments;
  auto* const first = reinterpret_cast<float*>(shared_memory());
  float* const last = first + (squares ? kLanes : 0);
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    const float low = ::fabsf(x[0][k]);
    const float high = ::fabsf(x[1][k]);
    if (squares) {
      first[kEight * t + k] = ::fmaf(x[1][k], x[1][k], x[0][k] * x[0][k]);
    }
    last[kEight * t + k] = largest ? larger(low, high) : low + high;
  }
  if (largest) {
    keep_largest(last, kLanes);
  } else {
    add_by_halves(last, kLanes, first, squares ? kLanes : 0);
  }
  if (t == 0) {
    const int values = values_of(job.statistic);
    float* const parts = job.parts + std::int64_t{blockIdx.x} * values;
    parts[0] = first[0];
    parts[values - 1] = last[0];
  }
}

// Needs shared memory for kTensorLanes floats per value.
__global__ void __launch_bounds__(kTensorLanes)
    tensor_magnitudes(const Magnitudes job) {
  const std::int64_t tensor = blockIdx.x;
  const std::int64_t begin = job.firsts[tensor];
  const std::int64_t end = job.firsts[tensor + 1];
  const auto t = static_cast<int>(threadIdx.x);
  auto* const lanes = reinterpret_cast<float*>(shared_memory());
  if (job.statistic == Statistic::Moments) {
    add_pairs(job.parts, begin, end, lanes);
    if (t == 0) {
      job.results[2 * tensor] = lanes[0];
      job.results[2 * tensor + 1] = lanes[kTensorLanes];
    }
    return;
  }
  const bool largest = job.statistic == Statistic::Largest;
  float value = 0;
  for (std::int64_t b = begin + t; b < end; b += kTensorLanes) {
    value = largest ? larger(value, job.parts[b]) : value + job.parts[b];
  }
  lanes[t] = value;
  if (largest) {
    keep_largest(lanes, kTensorLanes);
  } else {
    add_by_halves(lanes, kTensorLanes, lanes, 0);
  }
  if (t == 0) {
    job.results[tensor] = !largest || lanes[0] <= kLargestFloat
                              ? lanes[0]
                              : float_of(0x7F800000u);
  }
}

}  // namespace

int magnitudes(const Magnitudes& job, void* stream) {
  const std::size_t floats =
      static_cast<std::size_t>(values_of(job.statistic)) * sizeof(float);
  int first = 0;
  if (job.count > 0) {
    first = launch(
        block_magnitudes, job.count, kThreads, kLanes * floats, stream, job);
  }
  int rest = 0;
  if (job.tensors > 0) {
    rest = launch(
        tensor_magnitudes,
        job.tensors,
        kTensorLanes,
        kTensorLanes * floats,
        stream,
        job);
  }
  return first != 0 ? first : rest;
}

}  // namespace abtrain::kernels
