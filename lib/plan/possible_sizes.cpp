#include "plan/possible_sizes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "base/mapped.h"
#include "linalg/rank_rule.h"
#include "methods/ab/decompose.h"
#include "nn/families.h"
#include "nn/model.h"

namespace abtrain::plan {

namespace {

using Ranks = std::map<std::string, std::int64_t>;  // by layer; 0: dense

// A layer's ranks in the extremes of possible_sizes(), in ascending order of what it stores.
std::vector<std::int64_t> rank_ends(const linalg::RankRule& rule, const nn::NamedWeight& w) {
  // The rank is largest if all singular values are equal, and smallest if only one is nonzero.
  linalg::Spectrum spectrum = linalg::flat_spectrum(
      w.layer, std::max(w.weight->m(), w.weight->n()), w.weight->largest_rank(), w.weight->grid());
  const std::int64_t most = linalg::choose_rank(rule, spectrum).rank;
  const std::int64_t saving = linalg::largest_saving_rank(spectrum);
  std::fill(spectrum.singular_values.begin() + 1, spectrum.singular_values.end(), 0.0);
  const std::int64_t least = linalg::choose_rank(rule, spectrum).rank;
  return {least, most > 0 ? most : saving - saving % std::lcm(*rule.multiple, spectrum.grid), most};
}

}  // namespace

std::vector<config::PlannedSizes> possible_sizes(
    const config::RunOptions& options, const data::ExampleShape& shape) {
  if (auto known = config::model_sizes(options, shape)) {
    return {std::move(*known)};
  }
  const auto model = nn::make_model(options.model, shape);
  std::map<std::string, std::vector<std::int64_t>> ends;
  for (const nn::NamedWeight& w : methods::factorable_weights(*model, options.method)) {
    ends[w.layer] = rank_ends(config::planned_rule(options), w);
  }
  std::vector<Ranks> all;
  for (const std::size_t end : {0, 1, 2}) {
    for (Ranks& ranks = all.emplace_back(); const auto& [layer, own] : ends) {
      ranks[layer] = own[end];
    }
  }
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return mapped(
      all, [&](const Ranks& ranks) { return *config::model_sizes(options, shape, &ranks); });
}

}  // namespace abtrain::plan
