// What a Decomposition holds, for the files that make one.
#pragma once

#include <memory>

#include "linalg/range_finder.h"
#include "linalg/svd.h"
#include "linalg/tridiagonal.h"

namespace abtrain::linalg {

struct Decomposition::State {
  std::string layer;
  std::int64_t n = 0;
  double scale = 1;  // W was multiplied by this
  std::vector<double>
      eigenvalues;  // of the Gram matrix, descending; known ones
  std::vector<double> values;
  double rest_energy = 0;  // of the values that are not known
  double rest_bound = 0;
  // One of these gives the vectors.
  Tridiagonal tridiagonal;              // all, CPU
  at::Tensor vectors;                   // all, n x n columns in their order
  at::Tensor gram;                      // CUDA: until they are wanted
  std::unique_ptr<RangeFinder> finder;  // as many as values

  // Each sets `values`: by the exact route from a Gram matrix (CPU: a
  // symmetric_buffer), from what the finder proved, from the eigenvalues.
  void solve(const at::Tensor& matrix);
  void take_found();
  void set_values();
  // n x k, k <= values.size(), of any sign.
  at::Tensor first_vectors(std::int64_t k);
};

}  // namespace abtrain::linalg
