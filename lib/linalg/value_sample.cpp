#include "linalg/value_sample.h"

#include <algorithm>
#include <cmath>

namespace abtrain::linalg {

ValueSample sample_values(const std::vector<double>& singular_values) {
  constexpr std::int64_t kMax = 64;
  const auto last = static_cast<std::int64_t>(singular_values.size());
  ValueSample sample;
  std::int64_t index = 0;
  while (index < last) {
    // Steps of one first, then steps in a constant ratio up to the last value.
    const auto left = static_cast<double>(kMax - static_cast<std::int64_t>(sample.index.size()));
    const double ratio =
        index == 0 ? 1 : std::pow(static_cast<double>(last) / static_cast<double>(index), 1 / left);
    const auto next =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(index) * ratio - 1e-9));
    index = std::min(last, std::max(index + 1, next));
    sample.index.push_back(index);
    sample.value.push_back(singular_values[static_cast<std::size_t>(index - 1)]);
  }
  return sample;
}

}  // namespace abtrain::linalg
