// One matrix of a weights file: its singular values, its factors and their
// error. F64 is decomposed in F64, whatever its scale; F32, F16 and BF16 by the
// Gram matrix (linalg/svd.h), whose precision they cannot exceed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "linalg/svd.h"
#include "weights/weight_files.h"

namespace abtrain::weights {

class DecomposedMatrix {
 public:
  // A tensor of two or more dimensions. Throws Error(Diverged) naming it where
  // a number is not finite.
  explicit DecomposedMatrix(const WeightFiles::Item& item);

  // Of the matrix in a scale of its own; ratios of its values are right.
  const linalg::Spectrum& spectrum() const {
    return spectrum_;
  }
  // Frobenius, at most the largest double.
  double norm() const;

  struct Factors {
    at::Tensor a;
    at::Tensor b;
    double error;  // ||W - A B|| / ||W||, measured on the rounded factors
  };
  // Throws Error(Diverged) where `dtype` ("F16") cannot hold them.
  Factors factors(std::int64_t rank, const std::string& dtype) const;

 private:
  void decompose();
  double measured_error(const Factors& factors) const;

  std::string name_;
  at::Tensor w_;      // m x n, m >= n, in its own dtype
  int exponent_ = 0;  // of W = 2^exponent * (what was decomposed)
  std::optional<linalg::Decomposition> by_gram_;
  std::optional<linalg::ThinSvd> exact_;  // of F64
  linalg::Spectrum spectrum_;
};

// What is lost at a rank, as a share of the norm.
double truncation_error(const linalg::Spectrum& spectrum, std::int64_t rank);

}  // namespace abtrain::weights
