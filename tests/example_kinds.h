// The examples of a data set whose kind a test knows; found where they are
// called with data::Examples.
#pragma once

#include "data/dataset.h"

namespace abtrain::data {

template <typename Part>
auto& as_bytes(Part& examples) {
  return std::get<ByteImages>(examples);
}
template <typename Part>
auto& as_floats(Part& examples) {
  return std::get<FloatImages>(examples);
}
template <typename Part>
auto& as_list(Part& examples) {
  return std::get<ListedImages>(examples);
}

}  // namespace abtrain::data
