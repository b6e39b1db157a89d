// A weight in the layout of a file: as the model holds it, flat (a convolution
// as a matrix), or transposed (I x O, as Hugging Face's Conv1D).
#pragma once

#include <vector>

#include "nn/weight.h"

namespace abtrain::weights {

struct StoredWeight {
  const nn::Weight& weight;
  bool flat;        // as torchvision stores it
  bool transposed;  // as FileForm says

  std::vector<std::int64_t> sizes() const;
  // From O x I (x kh x kw) to the file's layout, and back.
  at::Tensor to_file(const at::Tensor& dense) const;
  at::Tensor from_file(const at::Tensor& stored) const;
  // The same for factors: those of a transposed weight are the weight's own,
  // unless it is square.
  linalg::LowRankPair in_file(const linalg::LowRankPair& pair) const;
  // The dimension along which parts of a weight follow each other.
  std::int64_t output_dimension() const {
    return transposed ? 1 : 0;
  }
};

}  // namespace abtrain::weights
