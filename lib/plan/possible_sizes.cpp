#include "plan/possible_sizes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/mapped.h"
#include "linalg/rank_rule.h"
#include "methods/ab/decompose.h"
#include "nn/families.h"
#include "nn/model.h"
#include "plan/traffic.h"

namespace abtrain::plan {

namespace {

using Ranks = std::map<std::string, std::int64_t>;  // by layer; 0: dense

// The ends of one layer's ranks, in ascending order of what the layer stores.
std::vector<std::int64_t> rank_ends(const linalg::RankRule& rule, const nn::NamedWeight& w) {
  // No spectrum gives less than one of a single value, or more than a flat one.
  const auto n = static_cast<std::size_t>(w.weight->n());
  linalg::Spectrum spectrum{w.layer, w.weight->m(), w.weight->n(), std::vector<double>(n, 1.0)};
  const std::int64_t most = linalg::choose_rank(rule, spectrum).rank;
  const std::int64_t saving = linalg::largest_saving_rank(spectrum);
  std::fill(spectrum.singular_values.begin() + 1, spectrum.singular_values.end(), 0.0);
  const std::int64_t least = linalg::choose_rank(rule, spectrum).rank;
  return {least, most > 0 ? most : saving - saving % *rule.multiple, most};
}

// Adds those of the ends that send the least and the most, chosen layer by layer.
void add_mixtures(
    std::vector<Ranks>& all, const std::map<std::string, std::vector<std::int64_t>>& ends,
    const auto& bytes_with) {
  Ranks cheapest = all.front();
  Ranks dearest = all.front();
  for (const auto& [layer, ranks] : ends) {
    const auto bytes = [&](std::int64_t rank) {
      Ranks one = all.front();
      one[layer] = rank;
      return bytes_with(one);
    };
    const std::vector<double> costs = mapped(ranks, bytes);
    const auto [least, most] = std::ranges::minmax_element(costs);
    cheapest[layer] = ranks[static_cast<std::size_t>(least - costs.begin())];
    dearest[layer] = ranks[static_cast<std::size_t>(most - costs.begin())];
  }
  all.push_back(std::move(cheapest));
  all.push_back(std::move(dearest));
}

}  // namespace

std::vector<config::PlannedSizes> possible_sizes(
    const config::RunOptions& options, const data::ExampleShape& shape, const RunLength& length) {
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
  const auto sizes_with = [&](const Ranks& ranks) {
    return *config::model_sizes(options, shape, &ranks);
  };
  add_mixtures(all, ends, [&](const Ranks& ranks) {
    return planned_bytes(options, sizes_with(ranks).sizes, length);
  });
  std::vector<Ranks> distinct;
  for (const Ranks& ranks : all) {
    if (std::ranges::count(distinct, ranks) == 0) {
      distinct.push_back(ranks);
    }
  }
  return mapped(distinct, sizes_with);
}

}  // namespace abtrain::plan
