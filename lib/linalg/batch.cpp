#include "linalg/batch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <map>
#include <stdexcept>

#include "base/error.h"
#include "linalg/exact_drivers.h"
#include "linalg/gram.h"
#include "linalg/parallel.h"

namespace abtrain::linalg {
namespace {

using Results = std::vector<std::optional<Decomposition>>;

// The largest magnitude in each matrix, with one read; a NaN stays a NaN.
std::vector<double> largest_entries(const std::vector<NamedMatrix>& matrices) {
  std::vector<at::Tensor> norms;
  for (const NamedMatrix& m : matrices) {
    norms.push_back(
        at::linalg_vector_norm(m.matrix.detach(), INFINITY).to(at::kDouble));
  }
  const auto host = at::stack(norms).cpu();
  const double* first = host.const_data_ptr<double>();
  std::vector<double> largest(first, first + host.numel());
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    check_finite(largest[i], matrices[i].layer);
  }
  return largest;
}

// Like ExactDrivers, but by LAPACK on the CPU; the vectors are on the matrix's
// device.
Eigenpairs on_host(const NamedMatrix& m, double scale) {
  const Gram gram =
      whole_gram_of(m.matrix.cpu().to(at::kDouble).mul(scale), m.layer);
  const SymmetricEigen found = eigh(gram.matrix, m.layer);
  const at::Tensor values = found.values.flip(0).contiguous();
  const double* first = values.const_data_ptr<double>();
  return {
      {first, first + values.numel()},
      found.vectors.flip(1).to(m.matrix.device())};
}

Decomposition partial_of(const NamedMatrix& m, RankRule rule) {
  rule.least = m.least_rank;
  return Decomposition::partial(m.matrix, m.layer, rule, m.warm);
}

void on_gpu(
    const std::vector<NamedMatrix>& matrices,
    const std::vector<bool>& partial,
    const BatchOptions& options,
    Results& results) {
  ABT_ASSERT(options.drivers != nullptr, "a batch on a GPU needs drivers");
  const auto largest = largest_entries(matrices);
  std::map<std::int64_t, std::vector<std::size_t>> of_side;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const NamedMatrix& m = matrices[i];
    if (partial[i]) {
      results[i] = partial_of(m, *options.rule);
    } else {
      of_side[m.matrix.size(1)].push_back(i);
    }
  }
  for (const auto& [n, members] : of_side) {
    std::vector<NamedMatrix> group;
    std::vector<at::Tensor> tensors;
    std::vector<double> scales;
    std::string what = "layers";
    for (const std::size_t i : members) {
      group.push_back(matrices[i]);
      tensors.push_back(matrices[i].matrix);
      scales.push_back(gram_scale(largest[i]));
      what += formatted(" '{}'", matrices[i].layer);
    }
    auto pairs = or_on_host(group, scales, [&] {
      return options.drivers->decompose(tensors, scales, what);
    });
    for (std::size_t j = 0; j < members.size(); ++j) {
      results[members[j]] = Decomposition::of_gram(
          matrices[members[j]].layer,
          std::move(pairs[j].values),
          pairs[j].vectors,
          scales[j]);
    }
  }
}

}  // namespace

std::vector<Eigenpairs> or_on_host(
    const std::vector<NamedMatrix>& matrices,
    const std::vector<double>& scales,
    const std::function<std::vector<Eigenpairs>()>& library) {
  try {
    return library();
  } catch (const std::runtime_error&) {
    std::vector<Eigenpairs> pairs;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      pairs.push_back(on_host(matrices[i], scales[i]));
    }
    return pairs;
  }
}

bool may_be_partial(SvdRoute route, std::int64_t n) {
  return route == SvdRoute::Randomized ||
         (route == SvdRoute::Auto && n >= kLargeSide);
}

std::vector<Decomposition> decompose_all(
    const std::vector<NamedMatrix>& matrices,
    const BatchOptions& options) {
  const at::NoGradGuard no_grad;
  Results results(matrices.size());
  std::vector<bool> partial;
  std::vector<double> costs;
  std::vector<std::size_t> whole;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const auto m = matrices[i].matrix.size(0);
    const auto n = matrices[i].matrix.size(1);
    partial.push_back(options.rule && may_be_partial(options.route, n));
    if (!partial.back()) {
      costs.push_back(decomposition_cost(m, n));
      whole.push_back(i);
    }
  }
  if (!matrices.empty() && matrices.front().matrix.is_cuda()) {
    on_gpu(matrices, partial, options, results);
  } else {
    // Partial decompositions use all threads for each product; exact ones use
    // one thread each.
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      if (partial[i]) {
        results[i] = partial_of(matrices[i], *options.rule);
      }
    }
    for_each_matrix(costs, options.threads, [&](std::size_t j) {
      const at::NoGradGuard no_grad_here;
      const NamedMatrix& m = matrices[whole[j]];
      results[whole[j]].emplace(m.matrix, m.layer);
    });
  }
  std::vector<Decomposition> all;
  for (auto& result : results) {
    all.push_back(std::move(*result));
  }
  return all;
}

}  // namespace abtrain::linalg
