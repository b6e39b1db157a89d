#include "methods/decompose.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "linalg/parallel.h"

namespace abtrain::methods {

namespace {

using Counts = std::vector<std::int64_t>;

// Every worker sends its layers' tensors in one flat buffer; hands `take` each
// layer's piece. sizes[i] numbers belong to layer i.
template <class Take>
void exchange(
    const std::vector<std::vector<std::size_t>>& owned,
    const Counts& sizes,
    const std::vector<at::Tensor>& mine,
    const at::TensorOptions& options,
    comm::Communicator& world,
    const Take& take) {
  Counts counts;
  for (const auto& layers : owned) {
    std::int64_t count = 0;
    for (const std::size_t i : layers) {
      count += sizes[i];
    }
    counts.push_back(count);
  }
  const auto rank = static_cast<std::size_t>(world.rank());
  at::Tensor in = at::empty({counts[rank]}, options);
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : mine) {
    in.narrow(0, offset, tensor.numel()).view(tensor.sizes()).copy_(tensor);
    offset += tensor.numel();
  }
  ABT_ASSERT(offset == counts[rank], offset, " numbers for ", counts[rank]);
  at::Tensor out =
      at::empty({std::accumulate(counts.begin(), counts.end(), 0L)}, options);
  world.all_gather(out, in, counts, comm::Purpose::Factors).wait();
  offset = 0;
  for (const auto& layers : owned) {
    for (const std::size_t i : layers) {
      take(i, out.narrow(0, offset, sizes[i]));
      offset += sizes[i];
    }
  }
}

// All spectra, from their owners: `lengths[i]` values of layer i.
std::vector<linalg::Spectrum> gather_spectra(
    const std::vector<nn::NamedWeight>& weights,
    const std::vector<std::vector<std::size_t>>& owned,
    const Counts& lengths,
    const std::vector<at::Tensor>& mine,
    comm::Communicator& world) {
  std::vector<linalg::Spectrum> spectra(weights.size());
  exchange(
      owned,
      lengths,
      mine,
      at::TensorOptions().dtype(at::kDouble),
      world,
      [&](std::size_t i, const at::Tensor& values) {
        const nn::NamedWeight& w = weights[i];
        const auto* data = values.const_data_ptr<double>();
        spectra[i] = {
            w.layer,
            w.weight->m(),
            w.weight->n(),
            {data, data + values.numel()}};
      });
  return spectra;
}

at::Tensor to_tensor(const std::vector<double>& values) {
  at::Tensor result = at::empty({std::ssize(values)}, at::kDouble);
  std::copy(values.begin(), values.end(), result.data_ptr<double>());
  return result;
}

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

}  // namespace

void check_factorable(
    const std::vector<nn::NamedWeight>& weights, const linalg::RankRule& rule) {
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
    const std::vector<double>& costs, int workers) {
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
    const std::function<void(double)>& add_seconds) {
  const at::NoGradGuard no_grad;
  std::vector<double> costs;
  Counts lengths;
  for (const nn::NamedWeight& w : weights) {
    costs.push_back(
        linalg::decomposition_cost(w.weight->m(), w.weight->n()));
    lengths.push_back(w.weight->n());
  }
  const auto owned = share_out(costs, world.size());
  const auto& own = owned[static_cast<std::size_t>(world.rank())];

  Stopwatch watch;
  std::vector<double> own_costs;
  for (const std::size_t i : own) {
    own_costs.push_back(costs[i]);
  }
  // Threads of the worker take whole matrices; on a GPU all go to its stream.
  const int threads = !own.empty() && weights[own[0]].weight->dense.is_cpu()
      ? at::get_num_threads()
      : 1;
  const auto matrix = [&](std::size_t j) {
    return weights[own[j]].weight->matrix().detach();
  };
  std::vector<std::optional<linalg::Decomposition>> spectra(own.size());
  std::vector<at::Tensor> values(own.size());
  linalg::for_each_matrix(own_costs, threads, [&](std::size_t j) {
    const at::NoGradGuard no_grad_here;
    spectra[j].emplace(matrix(j), weights[own[j]].layer);
    values[j] = to_tensor(spectra[j]->singular_values());
  });
  add_seconds(watch.seconds());

  const auto choices =
      choose(options, gather_spectra(weights, owned, lengths, values, world));

  watch = Stopwatch();
  std::vector<LayerFactors> result(weights.size());
  Counts sizes;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const nn::Weight& w = *weights[i].weight;
    result[i].rank = choices[i].rank;
    result[i].energy = choices[i].energy;
    sizes.push_back(result[i].rank * (w.m() + w.n()));
  }
  std::vector<linalg::LowRankPair> pairs(own.size());
  linalg::for_each_matrix(own_costs, threads, [&](std::size_t j) {
    const at::NoGradGuard no_grad_here;
    const std::int64_t rank = result[own[j]].rank;
    if (rank > 0) {
      pairs[j] = spectra[j]->factors(matrix(j), rank);
    }
    spectra[j].reset();
  });
  std::vector<at::Tensor> factors;
  for (const linalg::LowRankPair& pair : pairs) {
    if (pair.a.defined()) {
      factors.push_back(pair.a);
      factors.push_back(pair.b);
    }
  }
  add_seconds(watch.seconds());

  const auto options32 = weights.empty()
      ? at::TensorOptions().dtype(at::kFloat)
      : weights.front().weight->dense.options().requires_grad(false);
  exchange(
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
              flat.narrow(0, w.m() * rank, rank * w.n())
                  .view({rank, w.n()})};
        }
      });
  return result;
}

std::vector<LayerFactors> decompose_products(
    const std::vector<nn::NamedWeight>& weights,
    const std::vector<linalg::LowRankPair>& products,
    const DecomposeOptions& options,
    comm::Communicator& world,
    const std::function<void(double)>& add_seconds) {
  const at::NoGradGuard no_grad;
  std::vector<double> costs;
  Counts lengths;
  for (const linalg::LowRankPair& product : products) {
    costs.push_back(product_cost(
        product.a.size(0), product.b.size(1), product.a.size(1)));
    lengths.push_back(product.a.size(1));
  }
  const auto owned = share_out(costs, world.size());
  const auto& own = owned[static_cast<std::size_t>(world.rank())];

  Stopwatch watch;
  std::vector<linalg::ProductSvd> svds;
  std::vector<at::Tensor> values;
  for (const std::size_t i : own) {
    svds.push_back(linalg::product_svd(products[i].a, products[i].b));
    values.push_back(svds.back().singular_values.cpu());
  }
  add_seconds(watch.seconds());

  const auto choices =
      choose(options, gather_spectra(weights, owned, lengths, values, world));

  std::vector<LayerFactors> result(weights.size());
  Counts sizes;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    // A product of rank k has nothing beyond k to keep.
    const std::int64_t rank = std::min(choices[i].rank, lengths[i]);
    result[i].rank = rank;
    result[i].energy = choices[i].energy;
    sizes.push_back(2 * rank * lengths[i]);
  }
  watch = Stopwatch();
  std::vector<at::Tensor> transforms;
  for (std::size_t j = 0; j < own.size(); ++j) {
    if (result[own[j]].rank > 0) {
      const linalg::ProductTransforms t =
          linalg::transforms_from(svds[j], result[own[j]].rank);
      transforms.push_back(t.a);
      transforms.push_back(t.b);
    }
  }
  add_seconds(watch.seconds());
  const auto options32 = products.empty()
      ? at::TensorOptions().dtype(at::kFloat)
      : products.front().a.options().requires_grad(false);
  exchange(
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
                  products[i].a,
                  flat.narrow(0, 0, k * rank).view({k, rank})),
              at::matmul(
                  flat.narrow(0, k * rank, rank * k).view({rank, k}),
                  products[i].b)};
        }
      });
  return result;
}

}  // namespace abtrain::methods
