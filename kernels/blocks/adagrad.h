// One step of Adagrad by mirror descent (QCMD) or dual averaging (QRDA) over a flat buffer of
// parameters (formulas: ops/adagrad.h). This file has the kernel's body, a template over a team
// (team.h), and the launcher, which takes device pointers and a cudaStream_t, and returns a
// cudaError_t.
#pragma once

#include "kernels/team.h"

namespace abtrain::kernels {

struct AdagradStep {
  const CodeBlock* blocks;
  std::int64_t count;
  float* x;              // parameters
  const float* g;        // gradients
  float* s;              // sums of squared gradients
  float* z;              // QRDA: sums of gradients; null selects QCMD
  float* start;          // QRDA: x before the first step, saved by that step; null: 0
  const float* l1;       // weight of the l1 term, one per tensor
  const float* rate;     // one value: the learning rate
  const float* steps;    // one value: the number of this step, from 1
  const float* divisor;  // one value that divides the gradients; null: 1
  float delta;
};
ABT_LAUNCHER int adagrad_step(const AdagradStep& job, void* stream);

// a * b, rounded: written as an fma so that no compiler fuses it with a later addition, which would
// make CPU and GPU results differ.
ABT_HOST_DEVICE inline float product(float a, float b) {
  return ::fmaf(a, b, -0.0f);
}

// soft(v, t) = sign(v) max(|v| - t, 0); a NaN stays a NaN.
ABT_HOST_DEVICE inline float soft_threshold(float v, float t) {
  const float rest = ::fabsf(v) - t;
  return rest <= 0.0f ? 0.0f : ::copysignf(rest, v);
}

// Does the step for one block, which lies within one tensor. kDual selects QRDA.
template <bool kDual, bool kDivide, bool kThreshold, class Team>
ABT_INLINE void adagrad_block(Team& team, const AdagradStep& job, const CodeBlock& block) {
  const float rate = *job.rate;
  const float steps = *job.steps;
  const float divisor = kDivide ? *job.divisor : 1.0f;
  // Soft thresholding subtracts shrink / H, where H = delta + sqrt(s).
  const float shrink = (kDual ? rate * steps : rate) * job.l1[block.slot];
  const bool starts = kDual && job.start != nullptr && steps == 1.0f;
  const std::int64_t at = block.begin;
  const std::int64_t count = block.count;
  team.for_units(block, [&](int unit, int) ABT_INLINED {
    const auto store = [&](float* to, const float* from) ABT_INLINED {
      team.store(to + at, unit, count, [&](int k) ABT_INLINED { return from[k]; });
    };
    float x[Team::kUnit];
    float g[Team::kUnit];
    float s[Team::kUnit];
    float z[Team::kUnit];
    float start[Team::kUnit] = {};
    team.load(job.x + at, unit, count, x);
    team.load(job.g + at, unit, count, g);
    team.load(job.s + at, unit, count, s);
    if constexpr (kDual) {
      team.load(job.z + at, unit, count, z);
      if (starts) {
        store(job.start, x);
      }
      if (job.start != nullptr) {
        team.load(job.start + at, unit, count, start);
      }
    }
    ABT_UNROLL
    for (int k = 0; k < Team::kUnit; ++k) {
      const float gradient = kDivide ? g[k] / divisor : g[k];
      s[k] += product(gradient, gradient);
      const float h = job.delta + ::sqrtf(s[k]);
      float v;
      if constexpr (kDual) {
        z[k] += gradient;
        v = start[k] - rate * z[k] / h;
      } else {
        v = x[k] - rate * gradient / h;
      }
      x[k] = kThreshold ? soft_threshold(v, shrink / h) : v;
    }
    store(job.x, x);
    store(job.s, s);
    if constexpr (kDual) {
      store(job.z, z);
    }
  });
}

template <bool kDual, class Team>
ABT_INLINE void adagrad_block(Team& team, const AdagradStep& job, const CodeBlock& block) {
  const bool thresholds = job.l1[block.slot] > 0;
  if (job.divisor == nullptr) {
    thresholds ? adagrad_block<kDual, false, true>(team, job, block)
               : adagrad_block<kDual, false, false>(team, job, block);
  } else {
    thresholds ? adagrad_block<kDual, true, true>(team, job, block)
               : adagrad_block<kDual, true, false>(team, job, block);
  }
}

template <class Team>
ABT_INLINE void work(Team& team, const AdagradStep& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  job.z == nullptr ? adagrad_block<false>(team, job, block) : adagrad_block<true>(team, job, block);
}

}  // namespace abtrain::kernels
