#include "methods/ab/decompose.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "linalg/parallel.h"

namespace abtrain::methods {

namespace {

std::vector<linalg::RankChoice> choose(
    const std::vector<Source>& sources,
    const DecomposeOptions& options,
    const std::vector<linalg::Spectrum>& spectra) {
  if (options.cut && linalg::is_global(options.rule)) {
    return linalg::choose_ranks(
        options.rule, spectra, options.other_parameters);
  }
  std::vector<linalg::RankChoice> choices;
  for (std::size_t i = 0; i < spectra.size(); ++i) {
    if (options.cut) {
      linalg::RankRule rule = options.rule;
      rule.least = sources[i].least_rank;
      choices.push_back(linalg::choose_rank(rule, spectra[i]));
    } else {
      choices.push_back({std::min(spectra[i].m, spectra[i].n), 1.0});
    }
  }
  return choices;
}

// The rule for how much a partial spectrum must tell at first. A budget is met
// by uneven ranks, so find somewhat more than even ranks need, and later what
// the choice asks for.
std::optional<linalg::RankRule> first_rule(
    const std::vector<Source>& sources,
    const DecomposeOptions& options) {
  if (!options.cut) {
    return std::nullopt;
  }
  linalg::RankRule rule = options.rule;
  if (linalg::is_global(rule)) {
    constexpr double kMore = 1.25;
    double factored = 0;
    for (const Source& s : sources) {
      factored += static_cast<double>(s.weight.weight->numel());
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
      const std::vector<Source>& sources,
      const std::vector<std::size_t>& own,
      const DecomposeOptions& options,
      SvdMemory& memory,
      at::Device device)
      : route_(options.route),
        memory_(memory),
        // On a CPU the worker's threads take whole matrices; on a GPU all
        // matrices go to one stream.
        threads_(device.is_cpu() ? at::get_num_threads() : 1) {
    std::vector<linalg::LowRankPair> products;
    std::vector<std::string> names;
    for (const std::size_t i : own) {
      const Source& source = sources[i];
      const std::string& layer = source.weight.layer;
      if (source.is_product()) {
        products.push_back(source.product);
        names.push_back(layer);
      } else {
        costs_.push_back(decomposition_cost(source.shape()));
        matrices_.push_back(
            {source.weight.weight->matrix().detach(),
             layer,
             memory.start_of(layer),
             source.least_rank});
      }
    }
    for (std::size_t p = 0; p < products.size(); ++p) {
      products_.push_back(
          linalg::product_svd(products[p].a, products[p].b, names[p]));
      const at::Tensor values = products_[p].singular_values.cpu().contiguous();
      const double* first = values.const_data_ptr<double>();
      product_spectra_.push_back(
          {names[p],
           products[p].a.size(0),
           products[p].b.size(1),
           {first, first + values.numel()}});
    }
    dense_ = linalg::decompose_all(
        matrices_, {first_rule(sources, options), route_, threads_});
  }

  // What is known of layer j of these; of a product as many values as its rank:
  // all further ones are zero.
  linalg::Spectrum spectrum(std::size_t j) const {
    return j < dense_.size() ? dense_[j].spectrum(matrices_[j].matrix.size(0))
                             : product_spectra_[j - dense_.size()];
  }

  // Makes at least `count` values of layer j known, whose spectrum is partial.
  void grow(std::size_t j, std::int64_t count) {
    dense_[j].grow(count, matrices_[j].matrix.size(0));
  }

  // What this worker sends of the factors with these ranks, one rank per layer
  // of these. Frees the dense decompositions.
  std::vector<at::Tensor> take_factors(const std::vector<std::int64_t>& ranks) {
    std::vector<at::Tensor> tensors(2 * ranks.size());
    linalg::for_each_matrix(costs_, threads_, [&](std::size_t j) {
      const at::NoGradGuard no_grad_here;
      if (ranks[j] > 0) {
        const auto pair = dense_[j].factors(matrices_[j].matrix, ranks[j]);
        tensors[2 * j] = pair.a;
        tensors[2 * j + 1] = pair.b;
      }
    });
    for (std::size_t j = 0; j < dense_.size(); ++j) {
      if (linalg::may_be_partial(route_, matrices_[j].matrix.size(1))) {
        memory_.keep_start(matrices_[j].layer, dense_[j].next_start());
      }
    }
    for (std::size_t j = dense_.size(); j < ranks.size(); ++j) {
      if (ranks[j] > 0) {
        const auto transforms =
            linalg::transforms_from(products_[j - dense_.size()], ranks[j]);
        tensors[2 * j] = transforms.a;
        tensors[2 * j + 1] = transforms.b;
      }
    }
    dense_.clear();
    std::erase_if(tensors, [](const at::Tensor& t) { return !t.defined(); });
    return tensors;
  }

 private:
  linalg::SvdRoute route_;
  SvdMemory& memory_;
  int threads_;
  std::vector<double> costs_;  // of the dense weights
  std::vector<linalg::NamedMatrix> matrices_;
  std::vector<linalg::Decomposition> dense_;
  std::vector<linalg::ProductSvd> products_;
  std::vector<linalg::Spectrum> product_spectra_;
};

struct Choices {
  std::vector<linalg::RankChoice> ranks;
  std::vector<linalg::Spectrum> spectra;
};

// Calls its argument, some linear algebra, on the side stream.
using Work = std::function<void(const std::function<void()>&)>;

// Chooses the ranks of all layers, the same on every worker, and returns them
// with the spectra that they follow from. If partial spectra do not decide a
// choice that spans all layers, their owners find more values and everyone
// chooses again: every worker sees the same spectra and asks for the same.
Choices choose_together(
    const std::vector<Source>& sources,
    const DecomposeOptions& options,
    const Owned& owned,
    comm::Communicator& world,
    OwnLayers& layers,
    const Work& work) {
  const auto& own = owned[static_cast<std::size_t>(world.rank())];
  std::vector<linalg::Spectrum> spectra;
  std::vector<bool> partial;
  for (const Source& s : sources) {
    spectra.push_back(
        {s.weight.layer, s.weight.weight->m(), s.weight.weight->n(), {}});
    partial.push_back(may_be_partial(options.route, s.shape()));
  }
  std::vector<bool> wanted(sources.size(), true);
  for (;;) {
    Counts sizes;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      sizes.push_back(
          wanted[i] ? spectrum_numbers(options.route, sources[i].shape()) : 0);
    }
    std::vector<at::Tensor> mine;
    for (std::size_t j = 0; j < own.size(); ++j) {
      if (wanted[own[j]]) {
        mine.push_back(pack_spectrum(layers.spectrum(j), partial[own[j]]));
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
            unpack_spectrum(numbers, partial[i], spectra[i]);
          }
        });
    auto choices = choose(sources, options, spectra);
    bool decided = true;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      wanted[i] = !choices[i].decided;
      decided = decided && choices[i].decided;
    }
    if (decided) {
      return {std::move(choices), std::move(spectra)};
    }
    work([&] {
      for (std::size_t j = 0; j < own.size(); ++j) {
        if (wanted[own[j]]) {
          layers.grow(
              j,
              std::max(choices[own[j]].rank, spectra[own[j]].known() * 3 / 2));
        }
      }
    });
  }
}

// A source's new factors from what its owner sent: factors, or transforms.
linalg::LowRankPair
new_factors(const Source& source, std::int64_t rank, const at::Tensor& sent) {
  const SourceShape shape = source.shape();
  const std::int64_t left = shape.rows() * rank;
  const std::int64_t right = rank * shape.columns();
  const linalg::LowRankPair pair = {
      sent.narrow(0, 0, left).view({shape.rows(), rank}),
      sent.narrow(0, left, right).view({rank, shape.columns()})};
  if (!source.is_product()) {
    return pair;
  }
  return {
      at::matmul(source.product.a, pair.a),
      at::matmul(pair.b, source.product.b)};
}

}  // namespace

SourceShape Source::shape() const {
  return {
      weight.weight->m(),
      weight.weight->n(),
      is_product() ? product.a.size(1) : 0};
}

std::vector<nn::NamedWeight> factorable_weights(
    const nn::Model& model,
    const MethodOptions& options) {
  std::vector<nn::NamedWeight> weights =
      nn::factorable_weights(model, options.keep_dense, options.dense_share);
  const linalg::RankRule& rule = options.rank;
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
      "method.rank.rank: expected at most {}, the largest min(m, n) of the "
      "layers to factor; got {}",
      largest,
      rule.rank);
  return weights;
}

std::vector<LayerFactors> decompose_layers(
    const std::vector<Source>& sources,
    const DecomposeOptions& options,
    comm::Communicator& world,
    SvdMemory& memory,
    const std::function<void(double)>& add_seconds) {
  const at::NoGradGuard no_grad;
  const at::TensorOptions like =
      (sources[0].is_product() ? sources[0].product.a
                               : sources[0].weight.weight->dense)
          .options()
          .requires_grad(false);
  device::SideStream& stream = memory.stream(like.device());
  const Work work = [&](const std::function<void()>& body) {
    const Stopwatch watch;
    stream.run(body);
    add_seconds(watch.seconds());
  };
  std::vector<SourceShape> shapes;
  for (const Source& s : sources) {
    shapes.push_back(s.shape());
  }
  const Owned owned = share_out(shapes, world.size());
  const auto& own = owned[static_cast<std::size_t>(world.rank())];

  std::optional<OwnLayers> layers;
  work([&] { layers.emplace(sources, own, options, memory, like.device()); });
  const auto [choices, spectra] =
      choose_together(sources, options, owned, world, *layers, work);

  std::vector<LayerFactors> result(sources.size());
  Counts sizes;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    // A product of rank k has nothing beyond k to keep.
    const std::int64_t k = shapes[i].k;
    const std::int64_t rank =
        k > 0 ? std::min(choices[i].rank, k) : choices[i].rank;
    result[i].rank = rank;
    result[i].energy = choices[i].energy;
    result[i].values = linalg::sample_values(spectra[i].singular_values);
    sizes.push_back(factor_numbers(shapes[i], rank));
  }
  std::vector<std::int64_t> own_ranks;
  for (const std::size_t i : own) {
    own_ranks.push_back(result[i].rank);
  }
  std::vector<at::Tensor> mine;
  work([&] { mine = layers->take_factors(own_ranks); });
  gather_layers(
      owned,
      sizes,
      mine,
      like,
      world,
      [&](std::size_t i, const at::Tensor& sent) {
        if (result[i].rank > 0) {
          result[i].pair = new_factors(sources[i], result[i].rank, sent);
        }
      });
  return result;
}

}  // namespace abtrain::methods
