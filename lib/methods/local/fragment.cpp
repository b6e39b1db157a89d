#include "methods/local/fragment.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace abtrain::methods {

namespace {

// The indices at which `count` parts begin: no part is empty, and the largest is as small as
// possible.
std::vector<std::size_t> balanced_cut(const std::vector<std::int64_t>& sizes, std::size_t count) {
  const std::size_t n = sizes.size();
  std::vector<std::int64_t> sum(n + 1);
  std::partial_sum(sizes.begin(), sizes.end(), sum.begin() + 1);
  // largest[k][i]: the largest part when the first i sizes are cut into k
  // parts, the last of which begins at begin[k][i].
  constexpr auto kNone = std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<std::int64_t>> largest(
      count + 1, std::vector<std::int64_t>(n + 1, kNone));
  std::vector<std::vector<std::size_t>> begin(count + 1, std::vector<std::size_t>(n + 1, 0));
  largest[0][0] = 0;
  for (std::size_t k = 1; k <= count; ++k) {
    for (std::size_t i = k; i <= n; ++i) {
      for (std::size_t j = k - 1; j < i; ++j) {
        const std::int64_t part = std::max(largest[k - 1][j], sum[i] - sum[j]);
        if (part < largest[k][i]) {
          largest[k][i] = part;
          begin[k][i] = j;
        }
      }
    }
  }
  std::vector<std::size_t> cuts(count);
  std::size_t end = n;
  for (std::size_t k = count; k > 0; --k) {
    end = cuts[k - 1] = begin[k][end];
  }
  return cuts;
}

}  // namespace

std::vector<Fragment> cut_fragments(
    const std::vector<compress::Slot>& slots, const std::vector<int>& weights, std::int64_t count) {
  const auto layers = static_cast<std::int64_t>(weights.size());
  ABT_CHECK(
      count == 1 || count <= layers, Config,
      "method.fragments: expected at most the {} layers of the model, got {}", layers, count);
  // Parameters before the first weight belong to its layer.
  const auto layer_of = [&](const compress::Slot& slot) {
    const auto next = std::ranges::upper_bound(weights, slot.position);
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(next - weights.begin() - 1, 0));
  };
  std::vector<std::int64_t> sizes(std::max<std::size_t>(weights.size(), 1), 0);
  for (const compress::Slot& slot : slots) {
    sizes[layer_of(slot)] += slot.numel();
  }
  const auto cuts = balanced_cut(sizes, static_cast<std::size_t>(count));
  std::vector<std::vector<compress::Slot>> parts(cuts.size());
  for (const compress::Slot& slot : slots) {
    const auto next = std::ranges::upper_bound(cuts, layer_of(slot));
    parts[static_cast<std::size_t>(next - cuts.begin() - 1)].push_back(slot);
  }
  return {parts.begin(), parts.end()};
}

}  // namespace abtrain::methods
