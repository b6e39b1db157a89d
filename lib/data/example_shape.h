// The shape of the examples of a data set, as a network takes them.
#pragma once

#include <cstdint>
#include <vector>

namespace abtrain::data {

// What a network must know about the examples. Its input is B x channels x height x width, or B x
// context tokens; there are `classes` different tokens, or `vocabulary` if that is more.
struct ExampleShape {
  // An image in the form that the network takes.
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t classes = 0;  // the vocabulary for a text
  std::int64_t context = 0;  // tokens per window or row; 0: images
  // The following members are for arrays.
  std::vector<std::int64_t> sizes = {};  // an example's sizes in its file; else empty
  bool regression = false;               // numbers to predict: `classes` of them
  bool token_labels = true;              // false: one label per row of tokens
  std::int64_t vocabulary = 0;           // for rows of tokens; 0: as many as classes
  bool ignores_labels = false;           // some labels of training tokens are ignored
};

}  // namespace abtrain::data
