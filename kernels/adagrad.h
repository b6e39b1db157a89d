// A step of QCMD or QRDA Adagrad over a flat block of parameters (ops/adagrad.h
// has the formulas). Pointers are device pointers; the launch is asynchronous on
// `stream` (a cudaStream_t) and returns a cudaError_t as an int.
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
  float* s;        // sums of squared gradients
  float* z;        // sums of gradients; null: QCMD
  float* start;    // QRDA: x before the first step, which writes it; null: 0
  const float* l1;       // one value per tensor
  const float* rate;     // one value
  const float* steps;    // one value: 1 in the first step
  const float* divisor;  // one value that divides the gradients; null: 1
  float delta;
};
int adagrad_step(const AdagradStep& job, void* stream);

// a * b, rounded on its own: a compiler that fused it with an addition would
// change the bits.
ABT_HOST_DEVICE inline float product(float a, float b) {
  return ::fmaf(a, b, -0.0f);
}

// soft(v, t) = sign(v) max(|v| - t, 0); a NaN stays a NaN.
ABT_HOST_DEVICE inline float soft_threshold(float v, float t) {
  const float rest = ::fabsf(v) - t;
  return rest <= 0.0f ? 0.0f : ::copysignf(rest, v);
}

}  // namespace abtrain::kernels
