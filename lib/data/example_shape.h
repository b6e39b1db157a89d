// The shape of the examples of a data set, as a network takes them.
#pragma once

#include <cstdint>
#include <vector>

namespace abtrain::data {

// The network's input is B x channels x height x width, or B x context tokens, which are below the
// larger of `classes` and `vocabulary`.
struct ExampleShape {
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t classes = 0;  // number of classes; for a text, the vocabulary size
  std::int64_t context = 0;  // tokens per window or row; 0: images
  // The following members are for arrays.
  std::vector<std::int64_t> sizes = {};  // an example's sizes, after data.pool; empty if not arrays
  bool regression = false;               // true: predict `classes` numbers
  bool token_labels = true;              // false: one label per row of tokens
  std::int64_t vocabulary = 0;           // different tokens in rows of tokens; 0: no rows of tokens
  bool ignores_labels = false;           // some labels of training tokens are ignored
};

}  // namespace abtrain::data
