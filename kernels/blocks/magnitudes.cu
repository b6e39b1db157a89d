#include "kernels/blocks/magnitudes.h"

#include "kernels/code_blocks.cuh"

namespace abtrain::kernels {

namespace {

// Leaves the largest of `count` lanes in the first lane. All threads must call it.
__device__ void keep_largest(float* lanes, int count) {
  combine_by_halves(count, [=](int to, int from) { lanes[to] = larger(lanes[to], lanes[from]); });
}

// Needs shared memory for kLanes floats per value of the statistic.
__global__ void __launch_bounds__(kThreads) block_magnitudes(const Magnitudes job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const auto t = static_cast<int>(threadIdx.x);
  float x[kRounds][kEight];
  load_block(job.u + block.begin, block.count, x);
  const int values = values_of(job.statistic);
  auto* const first = reinterpret_cast<float*>(shared_memory());
  float* const last = first + (values - 1) * kLanes;
  const auto write = [&](float* tree, auto lane) {
    float lanes[kEight];
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      lanes[k] = lane(x[0][k], x[1][k]);
    }
    write_lanes(tree, lanes);
  };
  const bool above = job.statistic == Statistic::Above;
  const float cut = cut_of(job, block.slot);
  if (job.statistic == Statistic::Largest) {
    write(last, [](float low, float high) { return larger(::fabsf(low), ::fabsf(high)); });
    keep_largest(last, kLanes);
  } else {
    if (above) {
      const auto size = [=](float v) { return is_above(::fabsf(v), cut) ? ::fabsf(v) : 0.0f; };
      const auto count = [=](float v) { return is_above(::fabsf(v), cut) ? 1.0f : 0.0f; };
      write(first, [=](float low, float high) { return size(low) + size(high); });
      write(last, [=](float low, float high) { return count(low) + count(high); });
    } else {
      write(first, [](float low, float high) { return ::fmaf(high, high, low * low); });
      write(last, [](float low, float high) { return ::fabsf(low) + ::fabsf(high); });
    }
    add_by_halves(first, kLanes, last, kLanes);
  }
  if (t == 0) {
    float* const parts = job.parts + std::int64_t{blockIdx.x} * values;
    parts[0] = first[0];
    parts[values - 1] = above ? without_padding(last[0], cut, block) : last[0];
  }
}

// Needs shared memory for kTensorLanes floats per value of the statistic.
__global__ void __launch_bounds__(kTensorLanes) tensor_magnitudes(const Magnitudes job) {
  const std::int64_t tensor = blockIdx.x;
  const auto t = static_cast<int>(threadIdx.x);
  const int values = values_of(job.statistic);
  const bool largest = job.statistic == Statistic::Largest;
  auto* const first = reinterpret_cast<float*>(shared_memory());
  float* const last = first + (values - 1) * kTensorLanes;
  for (int i = 0; i < values; ++i) {
    float value = 0;
#pragma unroll 8  // several loads at a time
    for (std::int64_t b = job.firsts[tensor] + t; b < job.firsts[tensor + 1]; b += kTensorLanes) {
      const float part = job.parts[values * b + i];
      value = largest ? larger(value, part) : value + part;
    }
    first[i * kTensorLanes + t] = value;
  }
  if (largest) {
    keep_largest(first, kTensorLanes);
  } else {
    add_by_halves(first, kTensorLanes, last, kTensorLanes);
  }
  if (t == 0) {
    float* const results = job.results + values * tensor;
    const bool overflows = largest && !(first[0] <= kLargestFloat);
    results[0] = overflows ? float_of(0x7F800000u) : first[0];
    if (values == 2) {
      results[1] = last[0];
    }
    if (job.statistic == Statistic::Above) {
      results[0] = sum_above(first[0], last[0], cut_of(job, tensor));
    }
  }
}

}  // namespace

int magnitudes(const Magnitudes& job, void* stream) {
  const std::size_t floats = static_cast<std::size_t>(values_of(job.statistic)) * sizeof(float);
  return first_error(
      {launch(block_magnitudes, job.count, kThreads, kLanes * floats, stream, job),
       launch(tensor_magnitudes, job.tensors, kTensorLanes, kTensorLanes * floats, stream, job)});
}

}  // namespace abtrain::kernels
