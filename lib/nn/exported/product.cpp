#include "nn/exported/product.h"

#include <ATen/TensorOperators.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>

namespace abtrain::nn {

namespace {

bool is_one(const GraphArgument* argument) {
  return (argument->constant.isInt() && argument->constant.toInt() == 1) ||
         (argument->constant.isDouble() && argument->constant.toDouble() == 1);
}

std::optional<std::array<std::int64_t, 2>> pair_of(const GraphArgument* argument) {
  if (argument->constant.isString() && argument->constant.toStringRef() == "valid") {
    return std::array<std::int64_t, 2>{0, 0};
  }
  if (!argument->constant.isIntList()) {
    return {};
  }
  const std::vector<std::int64_t> numbers = argument->constant.toIntVector();
  if (numbers.size() == 1) {
    return std::array{numbers[0], numbers[0]};
  }
  return numbers.size() == 2 ? std::optional(std::array{numbers[0], numbers[1]}) : std::nullopt;
}

std::optional<Window> window_of(const GraphNode& node) {
  const auto stride = pair_of(node.find("stride"));
  const auto padding = pair_of(node.find("padding"));
  const auto dilation = pair_of(node.find("dilation"));
  const GraphArgument* const groups = node.find("groups");
  if (!stride || !padding || !dilation || !groups->constant.isInt() ||
      std::ranges::min(*stride) < 1 || std::ranges::min(*padding) < 0 ||
      std::ranges::min(*dilation) < 1 || groups->constant.toInt() < 1) {
    return {};
  }
  return Window{*stride, *padding, *dilation, groups->constant.toInt()};
}

}  // namespace

std::optional<WeightUse> weight_use(const GraphNode& node) {
  const auto value = [&](const char* name) {
    const GraphArgument* const argument = node.find(name);
    return argument == nullptr ? -1 : argument->value().value_or(-1);
  };
  if (!node.op || node.outputs.size() != 1) {
    return {};
  }
  std::optional<WeightUse> use;
  if (node.target == "aten::linear") {
    use = WeightUse{value("weight"), value("input"), value("bias")};
  } else if (node.target == "aten::conv2d") {
    if (const std::optional<Window> window = window_of(node)) {
      use = WeightUse{
          .weight = value("weight"),
          .input = value("input"),
          .bias = value("bias"),
          .convolves = true,
          .window = *window};
    }
  } else if (
      node.target == "aten::addmm" && is_one(node.find("beta")) && is_one(node.find("alpha"))) {
    use = WeightUse{
        .weight = value("mat2"), .input = value("mat1"), .bias = value("self"), .transposed = true};
  } else if (node.target == "aten::matmul" || node.target == "aten::mm") {
    use = WeightUse{
        .weight = value(node.target == "aten::mm" ? "mat2" : "other"),
        .input = value("self"),
        .transposed = true};
  }
  return use && use->weight >= 0 && use->input >= 0 && use->weight != use->input ? use
                                                                                 : std::nullopt;
}

Step make_product(const Weight& weight, const WeightUse& use, ValueId output) {
  return [&weight, use, output](const Frame& frame) {
    // apply_conv() and apply_linear() choose their own types.
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(kAutocast);
    const auto tensor = [&](ValueId id) {
      return id < 0 ? at::Tensor() : frame.values[static_cast<std::size_t>(id)].toTensor();
    };
    const at::Tensor x = tensor(use.input);
    const bool is_double = x.scalar_type() == at::kDouble;  // the result is, too
    const at::Tensor given = tensor(use.bias);
    const at::Tensor bias = given.defined() && is_double ? given.to(at::kFloat) : given;
    const auto store = [&](const at::Tensor& y) {
      frame.store(output, is_double ? y.to(at::kDouble) : y);
    };
    if (use.convolves) {
      store(apply_conv(weight, bias, x, use.window, frame.pass));
      return;
    }
    TORCH_CHECK(
        x.dim() > 0 && x.size(-1) == weight.in_features(), "an input of ", x.sizes(),
        ", but a weight for ", weight.in_features());
    // addmm may add a matrix instead of a bias vector.
    const bool is_vector = !bias.defined() || bias.dim() == 1;
    const at::Tensor y = apply_linear(weight, is_vector ? bias : at::Tensor(), x, frame.pass);
    store(is_vector ? y : y + bias);
  };
}

}  // namespace abtrain::nn
