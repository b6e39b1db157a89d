#include "methods/ab/decompose.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/mapped.h"
#include "linalg/grid.h"
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

// Whether the matrix has more columns than rows, as an adapter's may.
bool is_wide(const AbLayer& layer) {
  return layer.cut.m < layer.cut.n;
}

// The decompositions of the layers that this worker owns.
class OwnLayers {
 public:
  OwnLayers(std::vector<AbLayer>& layers, const std::vector<std::size_t>& own, at::Device device)
      : layers_(mapped(own, [&](std::size_t i) { return &layers[i]; })),
        costs_(mapped(
            layers_, [](const AbLayer* layer) { return decomposition_cost(layer->shape()); })),
        // On a CPU the worker's threads take whole layers; on a GPU all layers
        // go to one stream.
        threads_(device.is_cpu() ? at::get_num_threads() : 1),
        matrices_(own.size()),
        dense_(own.size()),
        products_(own.size()) {
    for (std::size_t j = 0; j < layers_.size(); ++j) {
      const AbLayer& layer = *layers_[j];
      if (layer.is_product()) {
        products_[j] = linalg::product_svd(layer.product.a, layer.product.b, layer.cut.name);
      }
    }
    for_each([&](std::size_t j) {
      const AbLayer& layer = *layers_[j];
      if (!layer.is_product()) {
        const at::Tensor matrix = layer.weight().matrix().detach();
        matrices_[j] = is_wide(layer) ? linalg::transposed(matrix) : matrix;
        dense_[j].emplace(matrices_[j], layer.cut.name);
      }
    });
  }

  // The singular values of each layer, float64; for a product, as many as its rank, because all
  // others are zero.
  std::vector<at::Tensor> spectra() const {
    std::vector<at::Tensor> tensors;
    for (std::size_t j = 0; j < layers_.size(); ++j) {
      tensors.push_back(at::tensor(
          dense_[j] ? dense_[j]->singular_values()
                    : linalg::spectrum_of(products_[j].singular_values),
          at::kDouble));
    }
    return tensors;
  }

  // Returns the tensors that this worker sends: factors or transforms, of the ranks of the layers'
  // cuts. Frees the decompositions.
  std::vector<at::Tensor> take_factors() {
    std::vector<linalg::LowRankPair> pairs(layers_.size());
    for_each([&](std::size_t j) {
      const AbLayer& layer = *layers_[j];
      const std::int64_t kept = layer.cut.rank / layer.grid();
      if (kept > 0) {
        pairs[j] = dense_[j] ? dense_[j]->factors(matrices_[j], kept)
                             : linalg::transforms_from(products_[j], kept);
        if (dense_[j] && is_wide(layer)) {
          pairs[j] = {
              linalg::transposed(pairs[j].b).contiguous(),
              linalg::transposed(pairs[j].a).contiguous()};
        }
      }
    });
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
  void for_each(const std::function<void(std::size_t)>& body) const {
    linalg::for_each_matrix(costs_, threads_, [&](std::size_t j) {
      const at::NoGradGuard no_grad_here;
      body(j);
    });
  }

  std::vector<AbLayer*> layers_;
  std::vector<double> costs_;
  int threads_;
  std::vector<at::Tensor> matrices_;                         // of dense weights
  std::vector<std::optional<linalg::Decomposition>> dense_;  // of dense weights
  std::vector<linalg::ProductSvd> products_;                 // of products
};

// Chooses the ranks of all layers, the same on every worker, and records them in `cut`.
void choose_together(
    std::vector<AbLayer>& layers, const CutOptions& options, const Owned& owned,
    comm::Communicator& world, const OwnLayers& decompositions) {
  std::vector<linalg::Spectrum> spectra(layers.size());
  gather_layers(
      owned, mapped(layers, [](const AbLayer& layer) { return layer.shape().values(); }),
      decompositions.spectra(), at::TensorOptions().dtype(at::kDouble), world,
      [&](std::size_t i, const at::Tensor& numbers) {
        const AbLayer& layer = layers[i];
        const auto [n, m] = std::minmax(layer.cut.m, layer.cut.n);
        spectra[i] = {layer.cut.name, m, n, linalg::to_host(numbers), layer.grid()};
      });
  const std::vector<linalg::RankChoice> choices = choose(layers, options, spectra);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerRank& cut = layers[i].cut;
    // A product of rank r has nothing beyond r to keep.
    const std::int64_t most = layers[i].shape().rank;
    cut.rank = most > 0 ? std::min(choices[i].rank, most) : choices[i].rank;
    cut.energy = choices[i].energy;
    cut.values = linalg::sample_values(spectra[i].singular_values);
  }
}

// Splits the numbers that a layer's owner sent into two tensors: factors of this rank of an m x n
// matrix, in its grid.
linalg::LowRankPair unpacked(
    const at::Tensor& sent, std::int64_t m, std::int64_t n, std::int64_t rank, std::int64_t grid) {
  const auto view = [&](std::int64_t offset, std::int64_t rows, std::int64_t columns) {
    const at::Tensor own = sent.narrow(0, offset, rows * columns);
    return grid == 1 ? own.view({rows, columns})
                     : own.view({grid, grid, rows / grid, columns / grid});
  };
  return {view(0, m, rank), view(m * rank, rank, n)};
}

// Makes a layer's new factors from the factors or transforms that its owner sent.
linalg::LowRankPair new_factors(const AbLayer& layer, const at::Tensor& sent) {
  const LayerShape shape = layer.shape();
  const linalg::LowRankPair pair =
      unpacked(sent, shape.rows(), shape.columns(), layer.cut.rank, shape.grid);
  if (!layer.is_product()) {
    return pair;
  }
  return {at::matmul(layer.product.a, pair.a), at::matmul(pair.b, layer.product.b)};
}

}  // namespace

std::vector<nn::NamedWeight> factorable_weights(
    const nn::Model& model, const MethodOptions& options) {
  std::vector<nn::NamedWeight> weights = nn::factorable_weights(
      model, options.keep_dense, options.dense_share, options.only, adapts(options));
  const linalg::RankRule& rule = options.rank;
  ABT_CHECK(
      !weights.empty(), Config,
      "method.name: ab has no layer to factor in this model ({} all of them); use ddp, or a model "
      "with hidden layers",
      options.only.empty() && model.frozen_parameters() == 0
          ? "keep_dense covers"
          : "keep_dense, only and model.frozen leave out");
  std::int64_t largest = 0;
  std::int64_t factored = 0;
  for (const nn::NamedWeight& w : weights) {
    w.weight->set_adapts(adapts(options));
    largest = std::max(largest, w.weight->largest_rank());
    factored += w.weight->numel();
  }
  const linalg::RankRule local =
      linalg::is_global(rule)
          ? linalg::even_rule(
                rule, static_cast<double>(factored),
                static_cast<double>(
                    model.dense_parameters() - model.frozen_parameters() - factored))
          : rule;
  for (const nn::NamedWeight& w : weights) {
    const nn::Weight& weight = *w.weight;
    w.weight->set_grid(linalg::largest_grid(
        options.blocks.value_or(kAutoBlocks), weight.sizes()[0], weight.sizes()[1],
        linalg::expected_rank(local, std::max(weight.m(), weight.n()), weight.largest_rank())));
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
  const auto work = [&](const std::function<void()>& body) {
    const Stopwatch watch;
    stream->run(body);
    add_seconds(watch.seconds());
  };
  const Owned owned = share_out(mapped(layers, &AbLayer::shape), world.size());
  const auto& own = owned[static_cast<std::size_t>(world.rank())];

  std::optional<OwnLayers> decompositions;
  work([&] { decompositions.emplace(layers, own, like.device()); });
  choose_together(layers, options, owned, world, *decompositions);

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
