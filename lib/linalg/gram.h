// The float64 Gram matrix of the short side, W^T W.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "linalg/cpu_kernels.h"

namespace abtrain::linalg {

struct Gram {
  // Of gram_of on the CPU: a symmetric_buffer of n with its lower half filled.
  // Else n x n.
  at::Tensor matrix;
  double scale = 1;  // W was multiplied by this power of two beforehand
};

// matrix: m x n, m >= n >= 1. Half of the products are left out, and a few
// rows at a time are turned into float64. Throws Error(Diverged) naming
// `layer` when an entry is not finite.
Gram gram_of(
    const at::Tensor& matrix,
    const std::string& layer,
    int width = best_width());

// Both halves on any device, n x n, by products of all threads.
Gram whole_gram_of(const at::Tensor& matrix, const std::string& layer);

// Throws Error(Diverged) naming `layer` where its largest entry is not finite.
void check_finite(double largest, const std::string& layer);

// The power of two that keeps squares in range, of a matrix whose largest entry
// is this (finite); nearly always 1.
double gram_scale(double largest);

}  // namespace abtrain::linalg
