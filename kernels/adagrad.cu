#include "kernels/adagrad.h"

#include "kernels/code_blocks.cuh"

namespace abtrain::kernels {

namespace {

__global__ void __launch_bounds__(kThreads) adagrad_kernel(const AdagradStep job) {
  const CodeBlock block = job.blocks[blockIdx.x];
  const bool wide = is_wide(job.x + block.begin) &&
      is_wide(job.g + block.begin) && is_wide(job.s + block.begin) &&
      (job.z == nullptr || is_wide(job.z + block.begin)) &&
      (job.start == nullptr || is_wide(job.start + block.begin));
  const float rate = *job.rate;
  const float divisor = job.divisor == nullptr ? 1.0f : *job.divisor;
  const float steps = *job.steps;
  const float l1 = job.l1[block.slot];
  // What soft thresholding subtracts, times H.
  const float shrink = (job.z == nullptr ? rate : rate * steps) * l1;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int i = (r * kThreads + static_cast<int>(threadIdx.x)) * kEight;
    const std::int64_t left = block.count - i;
    if (left <= 0) {
      return;
    }
    const std::int64_t at = block.begin + i;
    float x[kEight], g[kEight], s[kEight], z[kEight] = {}, start[kEight] = {};
    load_eight(job.x + at, left, wide, x);
    load_eight(job.g + at, left, wide, g);
    load_eight(job.s + at, left, wide, s);
    if (job.z != nullptr) {
      load_eight(job.z + at, left, wide, z);
      if (job.start != nullptr) {
        if (steps == 1.0f) {
          store_eight(job.start + at, left, wide, x);
#pragma unroll
          for (int k = 0; k < kEight; ++k) {
            start[k] = x[k];
          }
        } else {
          load_eight(job.start + at, left, wide, start);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      const float gradient =
          job.divisor == nullptr ? g[k] : divide(g[k], divisor);
      s[k] += product(gradient, gradient);
      const float h = job.delta + ::sqrtf(s[k]);
      if (job.z == nullptr) {
        x[k] -= divide(rate * gradient, h);
      } else {
        z[k] += gradient;
        x[k] = start[k] - divide(rate * z[k], h);
      }
      if (l1 > 0.0f) {
        x[k] = soft_threshold(x[k], divide(shrink, h));
      }
    }
    store_eight(job.x + at, left, wide, x);
    store_eight(job.s + at, left, wide, s);
    if (job.z != nullptr) {
      store_eight(job.z + at, left, wide, z);
    }
  }
}

}  // namespace

int adagrad_step(const AdagradStep& job, void* stream) {
  return job.count == 0
             ? 0
             : launch(adagrad_kernel, job.count, kThreads, 0, stream, job);
}

}  // namespace abtrain::kernels
