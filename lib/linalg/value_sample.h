// A few of a layer's singular values, for logs and plots.
#pragma once

#include <cstdint>
#include <vector>

namespace abtrain::linalg {

struct ValueSample {
  std::vector<std::int64_t> index;  // from 1, ascending
  std::vector<double> value;        // s_index, descending
};

// Returns at most 64 of the known values: the first, the last and, between them, more large than
// small values.
ValueSample sample_values(const std::vector<double>& singular_values);

}  // namespace abtrain::linalg
