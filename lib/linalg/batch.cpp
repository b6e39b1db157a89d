#include "linalg/batch.h"

#include <ATen/core/grad_mode.h>

#include "linalg/parallel.h"

namespace abtrain::linalg {

bool may_be_partial(SvdRoute route, std::int64_t n) {
  return route == SvdRoute::Randomized || (route == SvdRoute::Auto && n >= kLargeSide);
}

std::vector<Decomposition> decompose_all(
    const std::vector<NamedMatrix>& matrices, const BatchOptions& options) {
  const at::NoGradGuard no_grad;
  std::vector<std::optional<Decomposition>> results(matrices.size());
  std::vector<double> costs;
  std::vector<std::size_t> whole;
  // Partial decompositions use all threads for each product; exact ones use one
  // thread each.
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const NamedMatrix& m = matrices[i];
    if (options.rule && may_be_partial(options.route, m.matrix.size(1))) {
      RankRule rule = *options.rule;
      rule.least = m.least_rank;
      results[i] = Decomposition::partial(m.matrix, m.layer, rule, m.warm);
    } else {
      costs.push_back(decomposition_cost(m.matrix.size(0), m.matrix.size(1)));
      whole.push_back(i);
    }
  }
  for_each_matrix(costs, options.threads, [&](std::size_t j) {
    const at::NoGradGuard no_grad_here;
    const NamedMatrix& m = matrices[whole[j]];
    results[whole[j]].emplace(m.matrix, m.layer);
  });
  std::vector<Decomposition> all;
  for (auto& result : results) {
    all.push_back(std::move(*result));
  }
  return all;
}

}  // namespace abtrain::linalg
