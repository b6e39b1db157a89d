#include "plan/ab_notes.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace abtrain::plan {

namespace {

// At least one layer in eight must be depthwise for a note; in mobile networks, one in five is.
constexpr std::ptrdiff_t kDepthwiseShare = 8;

bool is_depthwise(const nn::NamedWeight& w) {
  return w.weight->is_fixed() && w.weight->is_conv() && w.weight->sizes()[1] == 1;
}

}  // namespace

std::vector<std::string> ab_notes(
    const nn::Model& model, const std::vector<config::PlannedSizes>& possible) {
  std::vector<std::string> notes;
  const auto layers = std::ssize(possible.front().sizes.layers);
  std::ptrdiff_t narrow = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(layers); ++i) {
    narrow += std::ranges::all_of(possible, [&](const config::PlannedSizes& planned) {
      return planned.sizes.layers[i].rank == 1;
    });
  }
  if (2 * narrow > layers) {
    notes.push_back(formatted(
        "method.rank: {} of the {} layers that AB-training factors get rank 1, with which they can "
        "learn little; expected higher ranks, or a dense method such as ddp or powersgd",
        narrow, layers));
  }
  const std::vector<nn::NamedWeight>& weights = model.weights();
  const auto depthwise = std::ranges::count_if(weights, is_depthwise);
  if (depthwise * kDepthwiseShare >= std::ssize(weights)) {
    notes.push_back(formatted(
        "model.name: {} of {} layers are depthwise convolutions, which stay dense, and with the "
        "layers between them they are a factored network already; AB-training seldom pays there, "
        "which `abtrain rivals` can check",
        depthwise, std::ssize(weights)));
  }
  return notes;
}

}  // namespace abtrain::plan
