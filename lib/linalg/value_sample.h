// A few of a layer's singular values, for logs and plots.
#pragma once

#include <cstdint>
#include <vector>

namespace abtrain::linalg {

struct ValueSample {
  std::vector<std::int64_t> index;  // from 1, ascending
  std::vector<double> value;        // s_index, descending
};

// At most 64 of them: the first and the last that are known, and those between
// the denser the larger they are.
ValueSample sample_values(const std::vector<double>& singular_values);

}  // namespace abtrain::linalg
