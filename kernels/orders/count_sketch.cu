#include "kernels/orders/count_sketch.h"

#include <cuda_runtime.h>
#include <cstring>

#include "kernels/elements.cuh"

namespace abtrain::kernels {

namespace {

constexpr int kSketchThreads = 256;

__device__ inline float signed_number(const CountSketch& job, std::int64_t index) {
  const float x = job.first[index] - (job.second != nullptr ? job.second[index] : 0.0f);
  return float_of(bits_of(x) ^ sign_of(index, job.seed));
}

// A thread block processes a part, and each thread every 256th bucket.
__global__ void __launch_bounds__(kSketchThreads) add_chunks(const CountSketch job) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * kSketchChunks;
  for (auto b = static_cast<std::int64_t>(threadIdx.x); b < job.buckets; b += kSketchThreads) {
    float sum = 0;
    for (std::int64_t c = begin; c < begin + kSketchChunks && c * job.buckets < job.numel; ++c) {
      const std::int64_t turned = b - turn_of(c, job.buckets, job.seed);
      const std::int64_t index = c * job.buckets + (turned < 0 ? turned + job.buckets : turned);
      if (index < job.numel) {
        sum += signed_number(job, index);
      }
    }
    job.parts[std::int64_t{blockIdx.x} * job.buckets + b] = sum;
  }
}

__global__ void __launch_bounds__(kSketchThreads)
    add_parts(const CountSketch job, std::int64_t parts) {
  const std::int64_t b = std::int64_t{blockIdx.x} * kSketchThreads + threadIdx.x;
  if (b >= job.buckets) {
    return;
  }
  float sum = 0;
  for (std::int64_t p = 0; p < parts; ++p) {
    sum += job.parts[p * job.buckets + b];
  }
  job.out[b] = sum;
}

}  // namespace

int count_sketch(const CountSketch& job, void* stream) {
  const std::int64_t parts = sketch_parts(job);
  return first_error(
      {launch(add_chunks, parts, kSketchThreads, 0, stream, job),
       launch(
           add_parts, (job.buckets + kSketchThreads - 1) / kSketchThreads, kSketchThreads, 0,
           stream, job, parts)});
}

}  // namespace abtrain::kernels
