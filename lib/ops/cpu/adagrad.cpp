#include "ops/cpu/adagrad.h"
#include "ops/cpu/code_blocks.h"

namespace abtrain::ops {

namespace {

// A block of one tensor. kDual selects dual averaging from `start` (null: 0).
template <bool kDual, bool kDivide, bool kThreshold>
ABT_INLINE void step_numbers(
    const kernels::AdagradStep& job,
    const CodeBlock& block,
    const float* start) {
  float* const __restrict x = job.x + block.begin;
  float* const __restrict s = job.s + block.begin;
  float* const __restrict z = kDual ? job.z + block.begin : nullptr;
  const float* const __restrict g = job.g + block.begin;
  const float rate = *job.rate;
  const float divisor = kDivide ? *job.divisor : 1.0f;
  // The threshold times H.
  const float shrink = (kDual ? rate * *job.steps : rate) * job.l1[block.slot];
  for (std::int64_t i = 0; i < block.count; ++i) {
    const float gradient = kDivide ? g[i] / divisor : g[i];
    s[i] += kernels::product(gradient, gradient);
    const float h = job.delta + std::sqrt(s[i]);
    float v;
    if constexpr (kDual) {
      z[i] += gradient;
      v = (start == nullptr ? 0.0f : start[i]) - rate * z[i] / h;
    } else {
      v = x[i] - rate * gradient / h;
    }
    x[i] = kThreshold ? kernels::soft_threshold(v, shrink / h) : v;
  }
}

template <bool kDual>
ABT_INLINE void step_block(
    const kernels::AdagradStep& job,
    const CodeBlock& block,
    const float* start) {
  const bool thresholds = job.l1[block.slot] > 0;
  if (job.divisor == nullptr) {
    thresholds ? step_numbers<kDual, false, true>(job, block, start)
               : step_numbers<kDual, false, false>(job, block, start);
  } else {
    thresholds ? step_numbers<kDual, true, true>(job, block, start)
               : step_numbers<kDual, true, false>(job, block, start);
  }
}

ABT_INLINE void work(const kernels::AdagradStep& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  if (job.z == nullptr) {
    step_block<false>(job, block, nullptr);
    return;
  }
  float* start = nullptr;
  if (job.start != nullptr) {
    start = job.start + block.begin;
    if (*job.steps == 1.0f) {
      std::copy_n(job.x + block.begin, block.count, start);
    }
  }
  step_block<true>(job, block, start);
}

}  // namespace

void adagrad_step_cpu(const kernels::AdagradStep& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
}

}  // namespace abtrain::ops
