// The float64 Gram matrix of the short side, W^T W.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "linalg/cpu_kernels.h"

namespace abtrain::linalg {

struct Gram {
  // On the CPU symmetric_buffer(n) with its lower half filled; on a GPU n x n, or k x k x n x n for
  // a grid.
  at::Tensor matrix;
  double scale = 1;  // power of two by which W was multiplied first
};

// matrix: m x n, m >= n >= 1, or on a GPU a grid k x k x m x n of such blocks.
// Symmetry saves half of the products, and only a few rows at a time are
// converted to float64. Throws Error(Diverged) naming `layer` when an entry is
// not finite.
Gram gram_of(const at::Tensor& matrix, const std::string& layer, int width = best_width());

// Throws Error(Diverged) naming `layer` if `largest`, the layer's largest entry, is not finite.
void check_finite(double largest, const std::string& layer);

// The singular value that belongs to an eigenvalue of a Gram matrix; 0 if rounding made the
// eigenvalue negative.
inline double singular_value(double eigenvalue) {
  return std::sqrt(std::max(eigenvalue, 0.0));
}

}  // namespace abtrain::linalg
