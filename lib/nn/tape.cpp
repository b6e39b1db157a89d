#include "nn/tape.h"

#include <ATen/ops/linear.h>

#include <utility>

#include "base/error.h"
#include "nn/grouped_linear.h"

namespace abtrain::nn {

void Tape::record(LinearMap map, const at::Tensor& output) {
  const auto is_trained = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.requires_grad();
  };
  map.examples = map.input.size(0);
  if (is_trained(map.weight)) {
    ABT_ASSERT(map.weight.is_leaf(), "a tape takes parameters, not products");
    map.input = map.input.detach();
  } else {
    map.weight.reset();
    map.input.reset();
  }
  if (!is_trained(map.bias)) {
    map.bias.reset();
  }
  if (!output.requires_grad() || !(map.weight.defined() || map.bias.defined())) {
    return;
  }
  ABT_ASSERT(!output.is_view(), "a tape cannot follow a view");
  map.gradient = std::make_shared<at::Tensor>();
  output.register_hook(
      [gradient = map.gradient](const at::Tensor& found) { *gradient = found.detach(); });
  maps.push_back(std::move(map));
}

at::Tensor cast(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.defined() ? tensor.to(type) : tensor;
}

namespace {

at::Tensor map(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type,
    std::int64_t groups) {
  return type == at::kBFloat16 || groups > 1
             ? grouped_linear(input, weight, bias, groups, type)
             : at::linear(cast(input, type), cast(weight, type), cast(bias, type));
}

}  // namespace

at::Tensor linear(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, at::ScalarType type,
    Tape* tape, std::int64_t groups) {
  if (tape == nullptr) {
    return map(input, weight, bias, type, groups);
  }
  // With more than two dimensions, the result could be a view.
  const at::Tensor output = map(input.flatten(0, -2), weight, bias, type, groups);
  tape->record({.weight = weight, .bias = bias, .input = input, .groups = groups}, output);
  return input.dim() == 2 ? output : output.unflatten(0, input.sizes().slice(0, input.dim() - 1));
}

}  // namespace abtrain::nn
