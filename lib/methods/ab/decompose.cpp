#include "methods/ab/decompose.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "linalg/parallel.h"
#include "methods/ab/gather_layers.h"

namespace abtrain::methods {

namespace {

std::vector<linalg::RankChoice> choose(
    const DecomposeOptions& options,
    const std::vector<linalg::Spectrum>& spectra) {
  if (options.cut) {
    return linalg::choose_ranks(
        options.rule, spectra, options.other_parameters);
  }
  std::vector<linalg::RankChoice> choices;
  for (const linalg::Spectrum& s : spectra) {
    choices.push_back({std::min(s.m, s.n), 1.0});
  }
  return choices;
}

// One per layer, without values yet.
std::vector<linalg::Spectrum> empty_spectra(
    const std::vector<nn::NamedWeight>& weights) {
  std::vector<linalg::Spectrum> spectra;
  for (const nn::NamedWeight& w : weights) {
    spectra.push_back({w.layer, w.weight->m(), w.weight->n(), {}});
  }
  return spectra;
}

// The rule for how much a partial spectrum must tell at first. A budget is met
// by uneven ranks, so find somewhat more than even ranks need, and later what
// the choice asks for.
std::optional<linalg::RankRule> first_rule(
    const std::vector<nn::NamedWeight>& weights,
    const DecomposeOptions& options) {
  if (!options.cut) {
    return std::nullopt;
  }
  linalg::RankRule rule = options.rule;
  if (linalg::is_global(rule.rule)) {
    constexpr double kMore = 1.25;
    double factored = 0;
    for (const nn::NamedWeight& w : weights) {
      factored += static_cast<double>(w.weight->numel());
    }
    const auto other = static_cast<double>(options.other_parameters);
    const double left = (factored + other) / rule.ratio - other;
    rule.rule = linalg::RankRuleName::Ratio;
    rule.ratio = std::max(1.0, left > 0 ? factored / left / kMore : factored);
  }
  return rule;
}

struct Choices {
  std::vector<linalg::RankChoice> ranks;
  std::vector<linalg::Spectrum> spectra;
};

// Chooses the ranks of all layers, the same on every worker, and returns them
// with the spectra that they follow from. If partial spectra do not decide a
// choice that spans all layers, their owners find more values and everyone
// chooses again: every worker sees the same spectra and asks for the same.
Choices choose_together(
    const std::vector<nn::NamedWeight>& weights,
    const DecomposeOptions& options,
    const Owned& owned,
    comm::Communicator& world,
    device::SideStream& stream,
    std::vector<linalg::Decomposition>& found,
    const std::function<void(double)>& add_seconds) {
  const auto& own = owned[static_cast<std::size_t>(world.rank())];
  std::vector<linalg::Spectrum> spectra = empty_spectra(weights);
  std::vector<bool> wanted(weights.size(), true);
  for (;;) {
    Counts sizes;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      sizes.push_back(
          wanted[i] ? spectrum_numbers(options.route, spectra[i].n) : 0);
    }
    const auto partial = [&](std::size_t i) {
      return linalg::may_be_partial(options.route, spectra[i].n);
    };
    std::vector<at::Tensor> mine;
    for (std::size_t j = 0; j < own.size(); ++j) {
      if (wanted[own[j]]) {
        mine.push_back(pack_spectrum(
            found[j].spectrum(spectra[own[j]].m), partial(own[j])));
      }
    }
    gather_layers(
        owned,
        sizes,
        mine,
        at::TensorOptions().dtype(at::kDouble),
        world,
        [&](std::size_t i, const at::Tensor& numbers) {
          if (wanted[i]) {
            unpack_spectrum(numbers, partial(i), spectra[i]);
          }
        });
    auto choices = choose(options, spectra);
    bool decided = true;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      wanted[i] = !choices[i].decided;
      decided = decided && choices[i].decided;
    }
    if (decided) {
      return {std::move(choices), std::move(spectra)};
    }
    const Stopwatch watch;
    stream.run([&] {
      for (std::size_t j = 0; j < own.size(); ++j) {
        if (wanted[own[j]]) {
          const linalg::Spectrum& s = spectra[own[j]];
          found[j].grow(std::max(choices[own[j]].rank, s.known() * 3 / 2), s.m);
        }
      }
    });
    add_seconds(watch.seconds());
  }
}

}  // namespace

void check_factorable(
    const std::vector<nn::NamedWeight>& weights,
    const linalg::RankRule& rule) {
  ABT_CHECK(
      !weights.empty(),
      Config,
      "method.name: ab has no layer to factor in this model (keep_dense covers "
      "all of them); use ddp, or a model with hidden layers");
  std::int64_t largest = 0;
  for (const nn::NamedWeight& w : weights) {
    largest = std::max(largest, w.weight->n());
  }
  ABT_CHECK(
      rule.rule != linalg::RankRuleName::Fixed || rule.rank <= largest,
      Config,
      "method.rank.rank: expected at most ",
      largest,
      ", the largest min(m, n) of the layers to factor; got ",
      rule.rank);
}

std::vector<std::vector<std::size_t>> share_out(
    const std::vector<double>& costs,
    int workers) {
  const std::vector<int> owner = linalg::balance(costs, workers);
  std::vector<std::vector<std::size_t>> owned(
      static_cast<std::size_t>(workers));
  for (std::size_t i = 0; i < owner.size(); ++i) {
    owned[static_cast<std::size_t>(owner[i])].push_back(i);
  }
  return owned;
}

double product_cost(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto side = static_cast<double>(k);
  return side * side * static_cast<double>(m + n) + 20 * side * side * side;
}

std::vector<LayerFactors> decompose_dense(
    const std::vector<nn::NamedWeight>& weights,
    const DecomposeOptions& options,
    comm::Communicator& world,
    SvdMemory& memory,
    const std::function<void(double)>& add_seconds) {
  const at::NoGradGuard no_grad;
  std::vector<double> costs;
  for (const nn::NamedWeight& w : weights) {
    costs.push_back(linalg::decomposition_cost(w.weight->m(), w.weight->n()));
  }
  const auto owned = share_out(costs, world.size());
  const auto& own = owned[static_cast<std::size_t>(world.rank())];
  const at::Device device =
      weights.empty() ? at::kCPU : weights[0].weight->dense.device();
  auto& stream = memory.stream(device);

  Stopwatch watch;
  std::vector<double> own_costs;
  std::vector<linalg::NamedMatrix> matrices;
  for (const std::size_t i : own) {
    own_costs.push_back(costs[i]);
    matrices.push_back(
        {weights[i].weight->matrix().detach(),
         weights[i].layer,
         memory.start_of(weights[i].layer)});
  }
  // On a CPU the worker's threads take whole matrices; on a GPU all matrices go
  // to one stream.
  const int threads = device.is_cpu() ? at::get_num_threads() : 1;
  std::vector<linalg::Decomposition> found;
  stream.run([&] {
    found = linalg::decompose_all(
        matrices,
        {first_rule(weights, options),
         options.route,
         threads,
         memory.drivers(device)});
  });
  add_seconds(watch.seconds());

  const auto [choices, spectra] = choose_together(
      weights, options, owned, world, stream, found, add_seconds);

  watch = Stopwatch();
  std::vector<LayerFactors> result(weights.size());
  Counts sizes;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const nn::Weight& w = *weights[i].weight;
    result[i].rank = choices[i].rank;
    result[i].energy = choices[i].energy;
    result[i].values = linalg::sample_values(spectra[i].singular_values);
    sizes.push_back(result[i].rank * (w.m() + w.n()));
  }
  std::vector<linalg::LowRankPair> pairs(own.size());
  stream.run([&] {
    linalg::for_each_matrix(own_costs, threads, [&](std::size_t j) {
      const at::NoGradGuard no_grad_here;
      const std::int64_t rank = result[own[j]].rank;
      if (rank > 0) {
        pairs[j] = found[j].factors(matrices[j].matrix, rank);
      }
    });
    for (std::size_t j = 0; j < own.size(); ++j) {
      if (linalg::may_be_partial(options.route, matrices[j].matrix.size(1))) {
        memory.keep_start(matrices[j].layer, found[j].next_start());
      }
    }
    found.clear();
  });
  std::vector<at::Tensor> factors;
  for (const linalg::LowRankPair& pair : pairs) {
    if (pair.a.defined()) {
      factors.push_back(pair.a);
      factors.push_back(pair.b);
    }
  }
  add_seconds(watch.seconds());

  const auto options32 =
      weights.empty()
          ? at::TensorOptions().dtype(at::kFloat)
          : weights.front().weight->dense.options().requires_grad(false);
  gather_layers(
      owned,
      sizes,
      factors,
      options32,
      world,
      [&](std::size_t i, const at::Tensor& flat) {
        const nn::Weight& w = *weights[i].weight;
        const std::int64_t rank = result[i].rank;
        if (rank > 0) {
          result[i].pair = {
              flat.narrow(0, 0, w.m() * rank).view({w.m(), rank}),
              flat.narrow(0, w.m() * rank, rank * w.n()).view({rank, w.n()})};
        }
      });
  return result;
}

std::vector<LayerFactors> decompose_products(
    const std::vector<nn::NamedWeight>& weights,
    const std::vector<linalg::LowRankPair>& products,
    const DecomposeOptions& options,
    comm::Communicator& world,
    SvdMemory& memory,
    const std::function<void(double)>& add_seconds) {
  const at::NoGradGuard no_grad;
  std::vector<double> costs;
  Counts lengths;
  for (const linalg::LowRankPair& product : products) {
    costs.push_back(
        product_cost(product.a.size(0), product.b.size(1), product.a.size(1)));
    lengths.push_back(product.a.size(1));
  }
  const auto owned = share_out(costs, world.size());
  const auto& own = owned[static_cast<std::size_t>(world.rank())];

  Stopwatch watch;
  const at::Device device =
      products.empty() ? at::kCPU : products[0].a.device();
  auto& stream = memory.stream(device);
  std::vector<linalg::LowRankPair> own_products;
  std::vector<std::string> own_layers;
  for (const std::size_t i : own) {
    own_products.push_back(products[i]);
    own_layers.push_back(weights[i].layer);
  }
  std::vector<linalg::ProductSvd> svds;
  std::vector<at::Tensor> values;
  stream.run([&] {
    svds =
        linalg::product_svds(own_products, own_layers, memory.drivers(device));
    for (const linalg::ProductSvd& svd : svds) {
      values.push_back(svd.singular_values.cpu());
    }
  });
  add_seconds(watch.seconds());

  // As many values as the product's rank; all further ones are zero.
  std::vector<linalg::Spectrum> spectra = empty_spectra(weights);
  gather_layers(
      owned,
      lengths,
      values,
      at::TensorOptions().dtype(at::kDouble),
      world,
      [&](std::size_t i, const at::Tensor& numbers) {
        const double* first = numbers.const_data_ptr<double>();
        spectra[i].singular_values.assign(first, first + numbers.numel());
      });
  const auto choices = choose(options, spectra);

  std::vector<LayerFactors> result(weights.size());
  Counts sizes;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    // A product of rank k has nothing beyond k to keep.
    const std::int64_t rank = std::min(choices[i].rank, lengths[i]);
    result[i].rank = rank;
    result[i].energy = choices[i].energy;
    result[i].values = linalg::sample_values(spectra[i].singular_values);
    sizes.push_back(2 * rank * lengths[i]);
  }
  watch = Stopwatch();
  std::vector<at::Tensor> transforms;
  stream.run([&] {
    for (std::size_t j = 0; j < own.size(); ++j) {
      if (result[own[j]].rank > 0) {
        const linalg::ProductTransforms t =
            linalg::transforms_from(svds[j], result[own[j]].rank);
        transforms.push_back(t.a);
        transforms.push_back(t.b);
      }
    }
  });
  add_seconds(watch.seconds());
  const auto options32 =
      products.empty() ? at::TensorOptions().dtype(at::kFloat)
                       : products.front().a.options().requires_grad(false);
  gather_layers(
      owned,
      sizes,
      transforms,
      options32,
      world,
      [&](std::size_t i, const at::Tensor& flat) {
        const std::int64_t rank = result[i].rank;
        const std::int64_t k = lengths[i];
        if (rank > 0) {
          result[i].pair = {
              at::matmul(
                  products[i].a, flat.narrow(0, 0, k * rank).view({k, rank})),
              at::matmul(
                  flat.narrow(0, k * rank, rank * k).view({rank, k}),
                  products[i].b)};
        }
      });
  return result;
}

}  // namespace abtrain::methods
