// A weight in the layout of a file: as the model holds it, flat (a convolution
// as a matrix), or transposed (I x O, as Hugging Face's Conv1D).
#pragma once

#include <vector>

#include "nn/weight.h"

namespace abtrain::weights {

struct StoredWeight {
  const nn::Weight& weight;
  bool flat;        // a convolution that is a matrix in the file: TorchvisionName::flat
  bool transposed;  // I x O in the file: FileForm::is_transposed()

  std::vector<std::int64_t> sizes() const;
  // Convert a dense weight from O x I (x kh x kw) to the file's layout, and back.
  at::Tensor to_file(const at::Tensor& dense) const;
  at::Tensor from_file(const at::Tensor& stored) const;
  // Convert factors, which a file holds as A (m x r) and B (r x n), m >= n, so that `transposed`
  // matters only for square weights. In a grid of k x k blocks, A is k x m/k x r: for each row of
  // blocks, their factors A side by side. B is k x r x n/k: for each column of blocks, their
  // factors B on top of one another.
  linalg::LowRankPair to_file(const linalg::LowRankPair& pair) const;
  linalg::LowRankPair from_file(const linalg::LowRankPair& stored) const;
  // The outputs' dimension in the file, along which parts of a larger tensor follow each other.
  std::int64_t output_dimension() const {
    return transposed ? 1 : 0;
  }
};

// Convert the factors of any matrix: from a LowRankPair to their form in a file, and back.
linalg::LowRankPair stored_factors(const linalg::LowRankPair& pair);
linalg::LowRankPair pair_of(const linalg::LowRankPair& stored);

}  // namespace abtrain::weights
