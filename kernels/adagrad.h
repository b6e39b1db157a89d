// A step of QCMD or QRDA Adagrad over a flat block of parameters (ops/adagrad.h
// has the formulas). Pointers are device pointers; the launch is asynchronous on
// `stream` (a cudaStream_t) and returns a cudaError_t as int.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/code_blocks.h"
#include "kernels/host_device.h"

namespace abtrain::kernels {

struct AdagradStep {
  const CodeBlock* blocks;
  std::int64_t count;
  float* x;        // parameters
  const float* g;  // gradients
  float* s;        // sums of their squares
  float* z;        // sums of them; null: QCMD
  float* start;    // QRDA: x of the first step, written then; null: 0
  const float* l1;       // one a tensor
  const float* rate;     // one number
  const float* steps;    // one number: 1 in the first step
  const float* divisor;  // of the gradients, one number; null: 1
  float delta;
};
int adagrad_step(const AdagradStep& job, void* stream);

// a * b, rounded by itself: a compiler that joins it with a sum would change bits.
ABT_HOST_DEVICE inline float product(float a, float b) {
  return ::fmaf(a, b, -0.0f);
}

// soft(v, t) = sign(v) max(|v| - t, 0); a NaN stays one.
ABT_HOST_DEVICE inline float soft_threshold(float v, float t) {
  const float rest = ::fabsf(v) - t;
  return rest <= 0.0f ? 0.0f : ::copysignf(rest, v);
}

}  // namespace abtrain::kernels
