#include "methods/ab/decompose.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/mapped.h"
#include "linalg/lapack.h"
#include "linalg/parallel.h"
#include "linalg/product.h"

namespace abtrain::methods {

namespace {

std::vector<linalg::RankChoice> choose(
    const std::vector<AbLayer>& layers, const CutOptions& options,
    const std::vector<linalg::Spectrum>& spectra) {
  if (options.cut && linalg::is_global(options.rule)) {
    return linalg::choose_ranks(options.rule, spectra, options.other_parameters);
  }
  std::vector<linalg::RankChoice> choices;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    linalg::RankRule rule = options.rule;
    rule.least = layers[i].cut.first_rank;
    choices.push_back(
        options.cut ? linalg::choose_rank(rule, spectra[i])
                    : linalg::RankChoice{layers[i].cut.n, 1.0});
  }
  return choices;
}

// The rule for how much a partial spectrum must tell at first. A budget is met
// by uneven ranks, so find somewhat more than even ranks need, and later what
// the choice asks for.
std::optional<linalg::RankRule> first_rule(
    const std::vector<AbLayer>& layers, const CutOptions& options) {
  if (!options.cut) {
    return std::nullopt;
  }
  linalg::RankRule rule = options.rule;
  if (linalg::is_global(rule)) {
    constexpr double kMore = 1.25;
    double factored = 0;
    for (const AbLayer& layer : layers) {
      factored += static_cast<double>(layer.weight().numel());
    }
    const auto other = static_cast<double>(options.other_parameters);
    const double left = (factored + other) / rule.ratio - other;
    rule.rule = linalg::RankRuleName::Ratio;
    rule.ratio = std::max(1.0, left > 0 ? factored / left / kMore : factored);
  }
  return rule;
}

// The decompositions of one worker's layers: dense weights, then products, as
// share_out() lists them.
class OwnLayers {
 public:
  OwnLayers(
      std::vector<AbLayer>& layers, const std::vector<std::size_t>& own, const CutOptions& options,
      at::Device device)
      : route_(options.route),
        // On a CPU the worker's threads take whole matrices; on a GPU all
        // matrices go to one stream.
        threads_(device.is_cpu() ? at::get_num_threads() : 1) {
    for (const std::size_t i : own) {
      AbLayer& layer = layers[i];
      layers_.push_back(&layer);
      if (layer.is_product()) {
        products_.push_back(linalg::product_svd(layer.product.a, layer.product.b, layer.cut.name));
      } else {
        costs_.push_back(decomposition_cost(layer.shape()));
        matrices_.push_back(
            {layer.weight().matrix().detach(), layer.cut.name, layer.svd_start,
             layer.cut.first_rank});
      }
    }
    dense_ = linalg::decompose_all(matrices_, {first_rule(layers, options), route_, threads_});
  }

  // Finds what is known of layer j of these; of a product as many values as its
  // rank: all further ones are zero. `spectrum`: its name, m and n.
  linalg::Spectrum spectrum(std::size_t j, linalg::Spectrum known) const {
    if (j < dense_.size()) {
      return dense_[j].spectrum(known.m);
    }
    known.singular_values = linalg::to_host(products_[j - dense_.size()].singular_values);
    return known;
  }

  // Makes at least `count` values of layer j known, whose spectrum is partial.
  void grow(std::size_t j, std::int64_t count) {
    dense_[j].grow(count, matrices_[j].matrix.size(0));
  }

  // What this worker sends of the factors with the ranks of the layers' cuts.
  // Frees the dense decompositions.
  std::vector<at::Tensor> take_factors() {
    std::vector<linalg::LowRankPair> pairs(layers_.size());
    linalg::for_each_matrix(costs_, threads_, [&](std::size_t j) {
      const at::NoGradGuard no_grad_here;
      if (layers_[j]->cut.rank > 0) {
        pairs[j] = dense_[j].factors(matrices_[j].matrix, layers_[j]->cut.rank);
      }
    });
    for (std::size_t j = 0; j < dense_.size(); ++j) {
      if (linalg::may_be_partial(route_, matrices_[j].matrix.size(1))) {
        layers_[j]->svd_start = dense_[j].next_start();
      }
    }
    for (std::size_t j = dense_.size(); j < layers_.size(); ++j) {
      if (layers_[j]->cut.rank > 0) {
        pairs[j] = linalg::transforms_from(products_[j - dense_.size()], layers_[j]->cut.rank);
      }
    }
    dense_.clear();
    std::vector<at::Tensor> tensors;
    for (const linalg::LowRankPair& pair : pairs) {
      if (pair.a.defined()) {
        tensors.insert(tensors.end(), {pair.a, pair.b});
      }
    }
    return tensors;
  }

 private:
  linalg::SvdRoute route_;
  int threads_;
  std::vector<AbLayer*> layers_;  // the dense ones first
  std::vector<double> costs_;     // of these
  std::vector<linalg::NamedMatrix> matrices_;
  std::vector<linalg::Decomposition> dense_;
  std::vector<linalg::ProductSvd> products_;
};

// Calls its argument, some linear algebra, on the side stream.
using Work = std::function<void(const std::function<void()>&)>;

// Chooses the ranks of all layers, the same on every worker, and sets what
// `cut` says of them. If partial spectra do not decide a choice that spans all
// layers, their owners find more values and everyone chooses again: every worker
// sees the same spectra and asks for the same.
void choose_together(
    std::vector<AbLayer>& layers, const CutOptions& options, const Owned& owned,
    comm::Communicator& world, OwnLayers& decompositions, const Work& work) {
  const auto& own = owned[static_cast<std::size_t>(world.rank())];
  std::vector<linalg::Spectrum> spectra;
  for (const AbLayer& layer : layers) {
    spectra.push_back({layer.cut.name, layer.cut.m, layer.cut.n, {}});
  }
  const auto is_partial = [&](std::size_t i) {
    return may_be_partial(options.route, layers[i].shape());
  };
  std::vector<linalg::RankChoice> choices(layers.size(), {0, 0, false});
  do {
    Counts sizes;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      sizes.push_back(choices[i].decided ? 0 : spectrum_numbers(options.route, layers[i].shape()));
    }
    std::vector<at::Tensor> mine;
    for (std::size_t j = 0; j < own.size(); ++j) {
      if (!choices[own[j]].decided) {
        mine.push_back(
            pack_spectrum(decompositions.spectrum(j, spectra[own[j]]), is_partial(own[j])));
      }
    }
    gather_layers(
        owned, sizes, mine, at::TensorOptions().dtype(at::kDouble), world,
        [&](std::size_t i, const at::Tensor& numbers) {
          if (!choices[i].decided) {
            unpack_spectrum(numbers, is_partial(i), spectra[i]);
          }
        });
    choices = choose(layers, options, spectra);
    work([&] {
      for (std::size_t j = 0; j < own.size(); ++j) {
        if (!choices[own[j]].decided) {
          decompositions.grow(j, std::max(choices[own[j]].rank, spectra[own[j]].known() * 3 / 2));
        }
      }
    });
  } while (!std::ranges::all_of(choices, &linalg::RankChoice::decided));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerRank& cut = layers[i].cut;
    // A product of rank k has nothing beyond k to keep.
    const std::int64_t k = layers[i].shape().rank;
    cut.rank = k > 0 ? std::min(choices[i].rank, k) : choices[i].rank;
    cut.energy = choices[i].energy;
    cut.values = linalg::sample_values(spectra[i].singular_values);
  }
}

// A layer's new factors from what its owner sent: factors, or transforms.
linalg::LowRankPair new_factors(const AbLayer& layer, const at::Tensor& sent) {
  const LayerShape shape = layer.shape();
  const std::int64_t rank = layer.cut.rank;
  const linalg::LowRankPair pair = {
      nn::view_at(sent, 0, {shape.rows(), rank}),
      nn::view_at(sent, shape.rows() * rank, {rank, shape.columns()})};
  if (!layer.is_product()) {
    return pair;
  }
  return {at::matmul(layer.product.a, pair.a), at::matmul(pair.b, layer.product.b)};
}

}  // namespace

std::vector<nn::NamedWeight> factorable_weights(
    const nn::Model& model, const MethodOptions& options) {
  std::vector<nn::NamedWeight> weights =
      nn::factorable_weights(model, options.keep_dense, options.dense_share);
  const linalg::RankRule& rule = options.rank;
  ABT_CHECK(
      !weights.empty(), Config,
      "method.name: ab has no layer to factor in this model (keep_dense covers "
      "all of them); use ddp, or a model with hidden layers");
  std::int64_t largest = 0;
  for (const nn::NamedWeight& w : weights) {
    largest = std::max(largest, w.weight->n());
  }
  ABT_CHECK(
      rule.rule != linalg::RankRuleName::Fixed || rule.rank <= largest, Config,
      "method.rank.rank: expected at most {}, the largest min(m, n) of the "
      "layers to factor; got {}",
      largest, rule.rank);
  return weights;
}

void decompose_layers(
    std::vector<AbLayer>& layers, const CutOptions& options, comm::Communicator& world,
    std::optional<device::SideStream>& stream, const std::function<void(double)>& add_seconds) {
  const at::NoGradGuard no_grad;
  const at::TensorOptions like =
      (layers[0].is_product() ? layers[0].product.a : layers[0].weight().dense)
          .options()
          .requires_grad(false);
  if (!stream) {
    stream.emplace(like.device());
  }
  const Work work = [&](const std::function<void()>& body) {
    const Stopwatch watch;
    stream->run(body);
    add_seconds(watch.seconds());
  };
  const Owned owned = share_out(mapped(layers, &AbLayer::shape), world.size());
  const auto& own = owned[static_cast<std::size_t>(world.rank())];

  std::optional<OwnLayers> decompositions;
  work([&] { decompositions.emplace(layers, own, options, like.device()); });
  choose_together(layers, options, owned, world, *decompositions, work);

  Counts sizes;
  for (const AbLayer& layer : layers) {
    sizes.push_back(factor_numbers(layer.shape(), layer.cut.rank));
  }
  std::vector<at::Tensor> mine;
  work([&] { mine = decompositions->take_factors(); });
  gather_layers(owned, sizes, mine, like, world, [&](std::size_t i, const at::Tensor& sent) {
    layers[i].factors =
        layers[i].cut.rank > 0 ? new_factors(layers[i], sent) : linalg::LowRankPair();
  });
}

}  // namespace abtrain::methods
