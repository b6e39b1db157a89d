// One matrix of a weights file: its singular values, its factors and their error. F64 tensors are
// decomposed in F64, whatever their magnitude; F32, F16 and BF16 tensors through the Gram matrix
// (linalg/svd.h), which is at least as precise as these dtypes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "linalg/spectrum.h"
#include "linalg/svd.h"
#include "weights/weight_files.h"

namespace abtrain::weights {

class DecomposedMatrix {
 public:
  // Takes a tensor of two or more dimensions. `grid`: blocks per side; divides the first two
  // dimensions. Throws Error(Diverged), naming the tensor, if a number is not finite.
  explicit DecomposedMatrix(const WeightFiles::Item& item, std::int64_t grid = 1);

  // The spectrum up to a common factor: only ratios of its values are meaningful.
  const linalg::Spectrum& spectrum() const {
    return spectrum_;
  }
  // Frobenius norm, capped at the largest double.
  double norm() const;

  // The factors in `dtype` (such as "F16"). `rank`: a multiple of the grid. Throws Error(Diverged)
  // if the dtype cannot hold them.
  linalg::LowRankPair factors(std::int64_t rank, const std::string& dtype) const;
  // ||W - A B|| / ||W||, measured on the rounded factors.
  double error_of(const linalg::LowRankPair& factors) const;

 private:
  void decompose();
  // The squared error of one block, in the decomposition's scale.
  double squares_of(const at::Tensor& w, const at::Tensor& a, const at::Tensor& b) const;

  std::string name_;
  std::int64_t grid_;
  at::Tensor w_;      // m x n, m >= n, in its own dtype; or a grid of blocks (linalg/svd.h)
  int exponent_ = 0;  // W = 2^exponent * (the matrix that was decomposed)
  std::optional<linalg::Decomposition> by_gram_;  // for all but F64
  std::optional<linalg::ThinSvd> exact_;          // for F64
  linalg::Spectrum spectrum_;
};

// ||W - A B|| / ||W|| (Frobenius) of the exact truncation to `rank`, from the singular values.
double truncation_error(const linalg::Spectrum& spectrum, std::int64_t rank);

}  // namespace abtrain::weights
