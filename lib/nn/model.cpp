#include "nn/model.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "base/error.h"
#include "base/mapped.h"
#include "base/random.h"
#include "device/generator.h"
#include "device/stream.h"
#include "linalg/orthogonal.h"

namespace abtrain::nn {

namespace {

void fill_uniform(float* data, std::int64_t count, double bound, Random& random) {
  for (std::int64_t i = 0; i < count; ++i) {
    data[i] = static_cast<float>((2.0 * random.uniform() - 1.0) * bound);
  }
}

// Box-Muller: two normal numbers from each pair of uniform ones.
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

// Removes the smallest weights that together have at most this share of the parameters.
void drop_smallest(std::vector<NamedWeight>& weights, double share) {
  const bool had_any = !weights.empty();
  const auto numel = [](const NamedWeight& w) { return w.weight->numel(); };
  std::int64_t total = 0;
  for (const NamedWeight& w : weights) {
    total += numel(w);
  }
  // In floating point, 0.29 * 100 is slightly below 29.
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

// Each number takes one random word, so a thread can begin at any block of four words.
void draw(const at::Tensor& tensor, const Init& init, const Random& random) {
  if (init.kind == Init::Kind::Kept) {
    return;
  }
  constexpr std::int64_t kBlock = 4;
  constexpr std::int64_t kGrain = 4096;  // blocks
  float* data = tensor.mutable_data_ptr<float>();
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

Model::Model(Architecture architecture) : architecture_(std::move(architecture)) {
  architecture_.layers->list("", tensors_);
}

bool Model::updates_buffers() const {
  return std::ranges::any_of(buffers(), [](const NamedBuffer& b) { return !b.is_fixed; });
}

std::int64_t Model::dense_parameters() const {
  std::int64_t total = 0;
  for (const NamedWeight& w : weights()) {
    total += w.weight->numel();
  }
  for (const NamedParameter& p : parameters()) {
    total += p.tensor->numel();
  }
  return total;
}

std::int64_t Model::frozen_parameters() const {
  std::int64_t total = 0;
  for (const NamedWeight& w : weights()) {
    total += w.weight->is_frozen() ? w.weight->numel() : 0;
  }
  for (const NamedParameter& p : parameters()) {
    total += p.is_frozen ? p.tensor->numel() : 0;
  }
  return total;
}

std::int64_t Model::stored_parameters() const {
  std::int64_t total = dense_parameters() - (base_.empty() ? 0 : frozen_parameters());
  for (const NamedWeight& w : weights()) {
    if (w.weight->is_factored()) {
      const std::int64_t pairs = w.weight->start.a.defined() ? 2 : 1;
      total += pairs * w.weight->rank() * (w.weight->m() + w.weight->n()) - w.weight->numel();
    }
  }
  return total;
}

void Model::freeze(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const bool freezes = !pattern.starts_with('!');
    const std::string glob = pattern.substr(freezes ? 0 : 1);
    bool matches = false;
    for (const NamedWeight& w : weights()) {
      if (matches_tensor(glob, w.name)) {
        w.weight->set_frozen(freezes);
        matches = true;
      }
    }
    for (NamedParameter& p : tensors_.parameters) {
      if (matches_tensor(glob, p.name)) {
        p.is_frozen = freezes;
        matches = true;
      }
    }
    ABT_CHECK(
        matches, Config, "model.frozen: '{}' matches no layer and no tensor; the layers are {}",
        glob, layer_list(*this));
  }
}

void Model::take_initial() {
  for (const NamedWeight& named : weights()) {
    Weight& w = *named.weight;
    const at::Tensor stored = architecture_.initial(named.name);
    const at::Tensor rows =
        (file_form().is_transposed(named.name) ? stored.t().contiguous() : stored).flatten(1);
    w.dense = w.from_matrix(w.transposed() ? rows.t() : rows);
  }
  for (const NamedParameter& p : parameters()) {
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
      draw(tensor, drawn, Random(seed, RandomPurpose::Initialize, place++));
    }
  };
  const auto fresh_parameters = [&](const auto& is_due) {
    for (const NamedParameter& p : parameters()) {
      if (p.init.kind != Init::Kind::Kept && is_due(layer_of(p.name))) {
        fresh(*p.tensor, p.init);
      }
    }
  };
  for (const NamedWeight& named : weights()) {
    Weight& w = *named.weight;
    // Filled in the order O, I, kh, kw, independent of the memory layout.
    at::Tensor values = at::empty(w.sizes());
    fresh(values, init == InitName::Orthogonal ? Init{Init::Kind::Normal, 1} : named.init);
    at::Tensor rows = values.flatten(1);
    if (init == InitName::Orthogonal) {
      rows = linalg::orthogonal_basis(rows);
    }
    w.dense = w.from_matrix(w.transposed() ? rows.t() : rows);
    // A layer's parameters are drawn right after its weight.
    fresh_parameters([&](const std::string& layer) { return layer == named.layer; });
  }
  // Parameters of layers without a weight, such as embeddings.
  fresh_parameters([&](const std::string& layer) {
    return std::ranges::find(weights(), layer, &NamedWeight::layer) == weights().end();
  });
}

std::vector<at::Tensor*> Model::tensors() const {
  std::vector<at::Tensor*> all;
  for (const NamedWeight& w : weights()) {
    all.insert(
        all.end(), {&w.weight->dense, &w.weight->inner, &w.weight->outer, &w.weight->rest,
                    &w.weight->start.a, &w.weight->start.b});
  }
  for (const NamedParameter& p : parameters()) {
    all.push_back(p.tensor);
  }
  for (const NamedBuffer& b : buffers()) {
    all.push_back(b.tensor);
  }
  return all;
}

std::set<const at::Tensor*> Model::frozen_tensors() const {
  std::set<const at::Tensor*> frozen;
  for (const NamedWeight& w : weights()) {
    frozen.insert(&w.weight->rest);
    if (w.weight->is_frozen()) {
      frozen.insert(&w.weight->dense);
    }
  }
  for (const NamedParameter& p : parameters()) {
    if (p.is_frozen) {
      frozen.insert(p.tensor);
    }
  }
  return frozen;
}

void Model::copy_from(const Model& other) {
  base_ = other.base_;
  shared_ = other.shared_;
  for (std::size_t i = 0; i < weights().size(); ++i) {
    weights()[i].weight->adopt_form(*other.weights()[i].weight);
  }
  const std::set<const at::Tensor*> frozen = frozen_tensors();
  const std::vector<at::Tensor*> from = other.tensors();
  const std::vector<at::Tensor*> own = tensors();
  for (std::size_t i = 0; i < own.size(); ++i) {
    *own[i] = !from[i]->defined()       ? at::Tensor()
              : frozen.contains(own[i]) ? from[i]->detach()
                                        : from[i]->detach().clone();
  }
}

at::Tensor SharedTensors::get(
    const std::string& name, const at::Device& device, const std::function<at::Tensor()>& make) {
  const std::scoped_lock lock(mutex_);
  at::Tensor& tensor = tensors_[name + " on " + device.str()];
  if (!tensor.defined()) {
    tensor = make();
    device::synchronize(device);  // other threads compute on their own streams
  }
  return tensor;
}

void Model::collect_statistics(const at::Tensor& inputs, std::int64_t k) {
  const at::NoGradGuard no_grad;
  if (k == 0) {
    // An old value that is not finite would remain even with its share of 0.
    for (const NamedBuffer& b : buffers()) {
      if (!b.is_fixed) {
        b.tensor->zero_();
      }
    }
  }
  const double share = 1.0 / static_cast<double>(k + 1);
  architecture_.layers->forward(inputs, {.statistics_share = share, .precision = precision_});
}

void Model::seed_dropout(std::uint64_t seed) {
  if (!generator_.defined()) {
    generator_ = device::make_generator(device_);
  }
  generator_.set_current_seed(seed);
}

void Model::to(const at::Device& device) {
  device_ = device;
  const std::set<const at::Tensor*> frozen = frozen_tensors();
  std::int64_t place = 0;
  for (at::Tensor* const tensor : tensors()) {
    ++place;
    if (!tensor->defined() || tensor->device() == device) {
      continue;
    }
    const auto there = [&] { return tensor->to(device); };
    *tensor = frozen.contains(tensor) ? shared_->get(formatted("tensor {}", place), device, there)
                                      : there();
  }
}

bool is_adapted(const Model& model) {
  return std::ranges::any_of(
      model.weights(), [](const NamedWeight& w) { return w.weight->rest.defined(); });
}

bool matches_tensor(const std::string& pattern, const std::string& tensor) {
  return glob_match(pattern, tensor) || glob_match(pattern, layer_of(tensor));
}

std::string layer_list(const Model& model) {
  return join(mapped(model.weights(), &NamedWeight::layer), ", ");
}

std::vector<int> weight_positions(const Model& model) {
  return mapped(model.weights(), &NamedWeight::position);
}

std::vector<NamedWeight> factorable_weights(
    const Model& model, const std::vector<std::string>& keep_dense, double dense_share,
    const std::vector<std::string>& only, bool frozen) {
  const auto matches = [](const std::string& pattern, const NamedWeight& w) {
    return glob_match(pattern, w.layer) || glob_match(pattern, w.name);
  };
  const auto check = [&](const char* key, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      ABT_CHECK(
          std::ranges::any_of(
              model.weights(), [&](const NamedWeight& w) { return matches(pattern, w); }),
          Config, "method.{}: '{}' matches no layer; the layers are {}", key, pattern,
          layer_list(model));
    }
  };
  std::vector<std::string> dense;
  for (const std::string& pattern : keep_dense) {
    if (pattern == "default") {
      dense.insert(dense.end(), model.keep_dense().begin(), model.keep_dense().end());
    } else {
      dense.push_back(pattern);
    }
  }
  check("keep_dense", dense);
  check("only", only);
  const auto is_any_of = [&](const std::vector<std::string>& patterns, const NamedWeight& w) {
    return std::ranges::any_of(
        patterns, [&](const std::string& pattern) { return matches(pattern, w); });
  };
  std::vector<NamedWeight> result;
  std::ranges::copy_if(model.weights(), std::back_inserter(result), [&](const NamedWeight& w) {
    return !w.weight->is_fixed() && (frozen || !w.weight->is_frozen()) &&
           (only.empty() || is_any_of(only, w)) && !is_any_of(dense, w);
  });
  drop_smallest(result, dense_share);
  return result;
}

}  // namespace abtrain::nn
