#include "nn/example_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "device/tensor_text.h"

namespace abtrain::nn {

ExampleGradients::ExampleGradients(
    const Tape& tape, const std::vector<Placed>& trained, std::int64_t scratch) {
  const at::NoGradGuard no_grad;
  std::vector<bool> found(trained.size(), false);
  const auto place_of = [&](const at::Tensor& tensor) -> std::optional<Placed> {
    for (std::size_t i = 0; i < trained.size(); ++i) {
      if (tensor.defined() && trained[i].tensor.is_same(tensor)) {
        ABT_ASSERT(!found[i], "parameter {} is used twice in a pass", i);
        found[i] = true;
        return trained[i];
      }
    }
    return {};
  };
  std::int64_t budget = scratch;
  for (const LinearMap& map : tape.maps) {
    auto weight = place_of(map.weight);
    auto bias = place_of(map.bias);
    if (weight || bias) {
      ABT_ASSERT(
          maps_.empty() || map.examples == examples_, "maps of {} and {} examples on one tape",
          examples_, map.examples);
      examples_ = map.examples;
      maps_.emplace_back(map, std::move(weight), std::move(bias), scratch, budget);
    }
  }
  const auto missing = std::ranges::find(found, false);
  ABT_ASSERT(missing == found.end(), "parameter {} is not on the tape", missing - found.begin());
  ABT_ASSERT(!maps_.empty(), "no trained parameters");
}

at::Tensor ExampleGradients::products() const {
  const at::NoGradGuard no_grad;
  at::Tensor sums = at::zeros({examples_, examples_}, maps_.front().options());
  for (const ExampleMap& map : maps_) {
    map.add_products(sums);
  }
  return sums;
}

at::Tensor ExampleGradients::products(const at::Tensor& vector) const {
  const at::NoGradGuard no_grad;
  at::Tensor sums = at::zeros({examples_}, maps_.front().options());
  for (const ExampleMap& map : maps_) {
    map.add_products(sums, vector);
  }
  return sums;
}

void ExampleGradients::add(const at::Tensor& vector, const at::Tensor& coefficients) const {
  const at::NoGradGuard no_grad;
  for (const ExampleMap& map : maps_) {
    map.add(vector, coefficients);
  }
}

void ExampleGradients::differences(const at::Tensor& rows) const {
  const at::NoGradGuard no_grad;
  ABT_ASSERT(
      examples_ % 2 == 0 && rows.dim() == 2 && rows.size(0) == examples_ / 2 && rows.stride(1) == 1,
      "differences of {} examples as {}", examples_, rows.sizes());
  for (const ExampleMap& map : maps_) {
    map.differences(rows);
  }
}

bool has_example_gradients(const Model& model) {
  std::set<std::string> biases;
  for (const NamedWeight& w : model.weights()) {
    if (w.weight->is_fixed()) {
      return false;
    }
    biases.insert(w.layer + ".bias");
  }
  return std::ranges::all_of(
      model.parameters(), [&](const NamedParameter& p) { return biases.contains(p.name); });
}

bool mixes_examples(const Model& model) {
  return !model.buffers().empty();
}

}  // namespace abtrain::nn
