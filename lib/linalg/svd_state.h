// What a Decomposition holds, for the files that implement it.
#pragma once

#include <memory>

#include "linalg/range_finder.h"
#include "linalg/svd.h"
#include "linalg/tridiagonal.h"

namespace abtrain::linalg {

struct Decomposition::State {
  std::string layer;
  std::int64_t n = 0;
  double scale = 1;                 // W was multiplied by it
  std::vector<double> eigenvalues;  // known ones of the Gram matrix, descending
  std::vector<double> values;
  double rest_energy = 0;  // of the unknown values
  double rest_bound = 0;
  // One of these supplies the vectors.
  Tridiagonal tridiagonal;              // all of them, CPU
  at::Tensor vectors;                   // all of them, n x n, columns in order
  at::Tensor gram;                      // CUDA, until vectors are needed
  std::unique_ptr<RangeFinder> finder;  // as many as values

  // Each sets `values`: solve() by the exact route from a Gram matrix (on the
  // CPU a symmetric_buffer), take_found() from what the finder proved,
  // set_values() from the eigenvalues.
  void solve(const at::Tensor& matrix);
  void take_found();
  void set_values();
  // n x k, k <= values.size(); signs are arbitrary.
  at::Tensor first_vectors(std::int64_t k);
};

}  // namespace abtrain::linalg
