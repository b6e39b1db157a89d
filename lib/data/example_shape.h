// The shape of the examples of a data set, as a network takes them.
#pragma once

#include <cstdint>
#include <vector>

namespace abtrain::data {

// What a network has to know of the examples. Its input is B x channels x height x width, or
// B x context tokens, of which there are `classes`, or `vocabulary` if that is more.
struct ExampleShape {
  // An image in the form that the network takes.
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t classes = 0;  // of a text: the vocabulary
  std::int64_t context = 0;  // tokens per window or row; 0: images
  // The rest is for arrays.
  std::vector<std::int64_t> sizes = {};  // of an example in its file; else empty
  bool regression = false;               // numbers to predict: `classes` of them
  bool token_labels = true;              // false: one label per row of tokens
  std::int64_t vocabulary = 0;           // of rows of tokens; 0: as many as classes
  bool ignores_labels = false;           // some labels of training tokens do not count
};

}  // namespace abtrain::data
