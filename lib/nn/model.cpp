#include "nn/model.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"
#include "device/generator.h"
#include "linalg/orthogonal.h"

namespace abtrain::nn {

namespace {

class Collector : public Visitor {
 public:
  void weight(const std::string& name, Weight& weight, const Init& init) override {
    // A module may have several weights: "attn.in_proj_weight".
    const std::string layer = name.ends_with(".weight") ? layer_of(name) : name;
    weights.push_back({name, layer, &weight, init, position_++});
  }
  void parameter(
      const std::string& name, at::Tensor& tensor, bool decays, const Init& init) override {
    parameters.push_back({name, &tensor, decays, init, position_++});
  }
  void buffer(const std::string& name, at::Tensor& tensor) override {
    buffers.push_back({name, &tensor});
  }
  std::vector<NamedWeight> weights;
  std::vector<NamedParameter> parameters;
  std::vector<NamedBuffer> buffers;

 private:
  int position_ = 0;
};

void fill_uniform(float* data, std::int64_t count, double bound, Random& random) {
  for (std::int64_t i = 0; i < count; ++i) {
    data[i] = static_cast<float>((2.0 * random.uniform() - 1.0) * bound);
  }
}

// Box-Muller: two normal numbers per pair of uniform ones.
void fill_normal(float* data, std::int64_t count, double deviation, Random& random) {
  for (std::int64_t i = 0; i < count; i += 2) {
    const double radius =
        deviation * std::sqrt(-2.0 * std::log1p(-static_cast<double>(random.uniform())));
    const double angle = 2.0 * std::numbers::pi * random.uniform();
    data[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < count) {
      data[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
}

// Each number takes one random word, so a thread can begin at any block of four
// and the values do not depend on the number of threads.
void fill(at::Tensor& tensor, const Init& init, const Random& random) {
  if (init.kind != Init::Kind::Uniform && init.kind != Init::Kind::Normal) {
    return;
  }
  constexpr std::int64_t kBlock = 4;
  constexpr std::int64_t kGrain = 4096;  // blocks
  float* data = tensor.data_ptr<float>();
  const std::int64_t numel = tensor.numel();
  const auto fill_blocks = [&](std::int64_t begin, std::int64_t end) {
    Random part = random.from_block(static_cast<std::uint32_t>(begin));
    const std::int64_t first = begin * kBlock;
    const std::int64_t count = std::min(numel, end * kBlock) - first;
    if (init.kind == Init::Kind::Uniform) {
      fill_uniform(data + first, count, init.scale, part);
    } else {
      fill_normal(data + first, count, init.scale, part);
    }
  };
  at::parallel_for(0, (numel + kBlock - 1) / kBlock, kGrain, fill_blocks);
}

// Removes the smallest weights, which together have at most this share of the
// parameters.
void drop_smallest(std::vector<NamedWeight>& weights, double share) {
  const bool had_any = !weights.empty();
  const auto numel = [](const NamedWeight& w) { return w.weight->numel(); };
  std::int64_t total = 0;
  for (const NamedWeight& w : weights) {
    total += numel(w);
  }
  // A share such as 0.29 of 100 lands slightly below the number that is meant.
  constexpr double kHair = 1e-9;
  const double allowed = share * static_cast<double>(total) * (1 + kHair);
  std::ranges::stable_sort(weights, {}, numel);
  std::int64_t taken = 0;
  const auto rest = std::ranges::find_if(weights, [&](const NamedWeight& w) {
    taken += numel(w);
    return static_cast<double>(taken) > allowed;
  });
  weights.erase(weights.begin(), rest);
  std::ranges::sort(weights, {}, &NamedWeight::position);
  ABT_CHECK(
      !weights.empty() || !had_any, Config,
      "method.dense_share: expected a number from 0 to below 1, got {}, which "
      "leaves no layer to factor",
      share);
}

}  // namespace

Model::Model(Architecture architecture) : architecture_(std::move(architecture)) {
  Collector collector;
  architecture_.layers->visit("", collector);
  weights_ = std::move(collector.weights);
  parameters_ = std::move(collector.parameters);
  buffers_ = std::move(collector.buffers);
}

std::int64_t Model::dense_parameters() const {
  std::int64_t total = 0;
  for (const NamedWeight& w : weights_) {
    total += w.weight->numel();
  }
  for (const NamedParameter& p : parameters_) {
    total += p.tensor->numel();
  }
  return total;
}

std::int64_t Model::stored_parameters() const {
  std::int64_t total = dense_parameters();
  for (const NamedWeight& w : weights_) {
    if (w.weight->is_factored()) {
      total += w.weight->rank() * (w.weight->m() + w.weight->n()) - w.weight->numel();
    }
  }
  return total;
}

void Model::take_initial() {
  for (const NamedWeight& named : weights_) {
    Weight& w = *named.weight;
    const at::Tensor stored = architecture_.initial(named.name);
    const at::Tensor rows =
        (file_form().is_transposed(named.name) ? stored.t().contiguous() : stored).flatten(1);
    w.dense = w.from_matrix(w.transposed() ? rows.t() : rows);
  }
  for (const NamedParameter& p : parameters_) {
    *p.tensor = architecture_.initial(p.name);
  }
}

void Model::initialize(InitName init, std::uint64_t seed) {
  if (architecture_.initial != nullptr) {
    take_initial();
    if (init == InitName::Kaiming) {
      return;
    }
  }
  std::uint32_t place = 0;
  const auto fresh = [&](at::Tensor& tensor, const Init& drawn) {
    if (init == InitName::Zeros) {
      tensor.zero_();
    } else {
      fill(tensor, drawn, Random(seed, RandomPurpose::Initialize, place++));
    }
  };
  // A layer's parameters are drawn right after its weight.
  const auto parameters = [&](const std::string& layer) {
    for (const NamedParameter& p : parameters_) {
      if (p.init.kind != Init::Kind::Kept && layer_of(p.name) == layer) {
        fresh(*p.tensor, p.init);
      }
    }
  };
  for (const NamedWeight& named : weights_) {
    Weight& w = *named.weight;
    // Filled in the order O, I, kh, kw, whatever the memory layout.
    at::Tensor values = at::empty(w.sizes());
    fresh(values, init == InitName::Orthogonal ? Init{Init::Kind::Normal, 1} : named.init);
    at::Tensor rows = values.flatten(1);
    if (init == InitName::Orthogonal) {
      rows = linalg::orthogonal_basis(rows);
    }
    w.dense = w.from_matrix(w.transposed() ? rows.t() : rows);
    parameters(named.layer);
  }
  // Parameters of no such layer, such as embeddings.
  for (const NamedParameter& p : parameters_) {
    if (p.init.kind != Init::Kind::Kept &&
        std::ranges::find(weights_, layer_of(p.name), &NamedWeight::layer) == weights_.end()) {
      fresh(*p.tensor, p.init);
    }
  }
}

std::vector<at::Tensor*> Model::tensors() const {
  std::vector<at::Tensor*> all;
  for (const NamedWeight& w : weights_) {
    all.insert(all.end(), {&w.weight->dense, &w.weight->inner, &w.weight->outer});
  }
  for (const NamedParameter& p : parameters_) {
    all.push_back(p.tensor);
  }
  for (const NamedBuffer& b : buffers_) {
    all.push_back(b.tensor);
  }
  return all;
}

void Model::copy_from(const Model& other) {
  const std::vector<at::Tensor*> from = other.tensors();
  const std::vector<at::Tensor*> own = tensors();
  for (std::size_t i = 0; i < own.size(); ++i) {
    *own[i] = from[i]->defined() ? from[i]->detach().clone() : at::Tensor();
  }
}

void Model::collect_statistics(const at::Tensor& inputs, std::int64_t k) {
  const at::NoGradGuard no_grad;
  if (k == 0) {
    // What is not finite would outlast a share of 0.
    for (const NamedBuffer& b : buffers_) {
      b.tensor->zero_();
    }
  }
  Pass pass;
  pass.precision = precision_;
  pass.statistics_share = 1.0 / static_cast<double>(k + 1);
  architecture_.layers->forward(inputs, pass);
}

void Model::seed_dropout(std::uint64_t seed) {
  if (!generator_.defined()) {
    generator_ = device::make_generator(device_);
  }
  generator_.set_current_seed(seed);
}

void Model::to(const at::Device& device) {
  device_ = device;
  for (at::Tensor* const tensor : tensors()) {
    if (tensor->defined()) {
      *tensor = tensor->to(device);
    }
  }
}

std::string layer_of(const std::string& tensor) {
  return tensor.substr(0, tensor.rfind('.'));
}

bool matches_tensor(const std::string& pattern, const std::string& tensor) {
  return glob_match(pattern, tensor) || glob_match(pattern, layer_of(tensor));
}

std::unique_ptr<Model> make_model(const ModelOptions& options, const InputShape& shape) {
  return std::make_unique<Model>(build(options, shape));
}

std::vector<int> weight_positions(const Model& model) {
  std::vector<int> positions;
  for (const NamedWeight& w : model.weights()) {
    positions.push_back(w.position);
  }
  return positions;
}

std::vector<NamedWeight> factorable_weights(
    const Model& model, const std::vector<std::string>& keep_dense, double dense_share) {
  std::vector<std::string> patterns;
  for (const std::string& pattern : keep_dense) {
    if (pattern == "default") {
      patterns.insert(patterns.end(), model.keep_dense().begin(), model.keep_dense().end());
    } else {
      patterns.push_back(pattern);
    }
  }
  std::vector<bool> used(patterns.size(), false);
  std::vector<NamedWeight> result;
  std::vector<std::string> names;
  for (const NamedWeight& named : model.weights()) {
    bool keep = named.weight->is_fixed();
    names.push_back(named.layer);
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (glob_match(patterns[i], named.layer) || glob_match(patterns[i], named.name)) {
        used[i] = true;
        keep = true;
      }
    }
    if (!keep) {
      result.push_back(named);
    }
  }
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    ABT_CHECK(
        used[i], Config, "method.keep_dense: '{}' matches no layer; the layers are {}", patterns[i],
        join(names, ", "));
  }
  drop_smallest(result, dense_share);
  return result;
}

}  // namespace abtrain::nn
