#include "nn/exported/operators.h"

#include <ATen/autocast_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/embed.h"
#include "base/text.h"

namespace abtrain::nn {

ABT_EMBED(operators_file, ABTRAIN_OPERATORS)

namespace {

using Stack = torch::jit::Stack;

constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;  // of a window, a padding or a result
constexpr std::int64_t kMaxParts = std::int64_t{1} << 16;
constexpr double kMaxScale = 10'000;
constexpr std::int64_t kMaxPower = std::int64_t{1} << 20;

// True if the tensors have one type, or autocast will give them one before the operator runs.
bool is_like(const at::Tensor& tensor, const at::Tensor& other) {
  return tensor.scalar_type() == other.scalar_type() ||
         (at::autocast::is_autocast_enabled(other.device().type()) && tensor.is_floating_point() &&
          other.is_floating_point());
}

void check_in_range(const c10::IValue& value, std::int64_t most, const std::string& name) {
  const auto check = [&](const c10::IValue& number) {
    TORCH_CHECK(
        !number.isInt() || (number.toInt() >= -most && number.toInt() <= most), name,
        ": expected at most ", most, ", got ", number);
  };
  if (value.isIntList()) {
    for (const std::int64_t number : value.toIntVector()) {
      check(number);
    }
  } else {
    check(value);
  }
}

// Throws unless the weights and states have the sizes that PyTorch's modules pass
// (torch/nn/modules/rnn.py): the CPU kernels of lstm, gru and rnn trust them.
void check_recurrent(const Stack& stack, std::int64_t gates) {
  const auto expect = [](bool ok, const char* what) { TORCH_CHECK(ok, "expected ", what); };
  const auto has_sizes = [](const at::Tensor& tensor, const std::vector<std::int64_t>& sizes) {
    return tensor.defined() && tensor.sizes() == c10::IntArrayRef(sizes);
  };
  const at::Tensor input = stack.at(0).toTensor();
  const std::vector<at::Tensor> states = stack.at(1).isTensor()
                                             ? std::vector{stack.at(1).toTensor()}
                                             : stack.at(1).toTensorVector();
  const std::vector<at::Tensor> params = stack.at(2).toTensorVector();
  const bool biases = stack.at(3).toBool();
  const std::int64_t layers = stack.at(4).toInt();
  const std::int64_t directions = stack.at(7).toBool() ? 2 : 1;
  const bool batch_first = stack.at(8).toBool();
  expect(input.dim() == 3 && input.is_floating_point(), "an input of three dimensions");
  expect(layers > 0 && layers <= kMaxSize, "at least one layer");
  const std::int64_t usual = biases ? 4 : 2;
  const bool projects = std::ssize(params) == layers * directions * (usual + 1);
  expect(projects || std::ssize(params) == layers * directions * usual, "weights for each layer");
  const std::int64_t hidden = params[0].dim() == 2 ? params[0].size(0) / gates : 0;
  expect(hidden > 0, "weights with rows for each gate");
  const std::int64_t out = projects ? params[static_cast<std::size_t>(usual)].size(0) : hidden;
  std::size_t next = 0;
  for (std::int64_t layer = 0; layer < layers * directions; ++layer) {
    const std::int64_t in = layer < directions ? input.size(2) : out * directions;
    std::vector<std::vector<std::int64_t>> sizes = {{gates * hidden, in}, {gates * hidden, out}};
    if (biases) {
      sizes.insert(sizes.end(), 2, {gates * hidden});
    }
    if (projects) {
      sizes.push_back({out, hidden});
    }
    for (const auto& wanted : sizes) {
      const at::Tensor& weight = params[next++];
      expect(
          has_sizes(weight, wanted) && is_like(weight, input),
          "weights of the input's type and of the sizes of their layer");
    }
  }
  expect(states.size() == (gates == 4 ? 2U : 1U), "a state, or two for an LSTM");
  for (std::size_t i = 0; i < states.size(); ++i) {
    expect(
        has_sizes(
            states[i],
            {layers * directions, input.size(batch_first ? 0 : 1), i == 0 ? out : hidden}) &&
            is_like(states[i], input),
        "states of layers x batch x features");
  }
}

// Throws if a norm would normalize by a single value per channel, which PyTorch's modules refuse in
// Python: its variance is 0, and its unbiased variance, which running statistics use, is not a
// number.
void check_values_per_channel(const at::Tensor& input, std::int64_t first, bool by_batch) {
  std::int64_t values = 1;
  for (std::int64_t i = first; i < input.dim(); ++i) {
    values *= i == 1 ? 1 : input.size(i);
  }
  TORCH_CHECK(
      !by_batch || values > 1,
      "expected more than one value per channel to normalize by, got an input of ", input.sizes(),
      "; it needs more examples per batch (data.batch_size; in evaluations evaluate.batch_size) or "
      "larger ones");
}

}  // namespace

void check_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool grouped) {
  for (const at::Tensor* const tensor : {&query, &key, &value}) {
    TORCH_CHECK(
        tensor->defined() && tensor->dim() >= (grouped ? 3 : 2) && is_like(*tensor, query),
        "attention: expected queries, keys and values of one type, with at least ", grouped ? 3 : 2,
        " dimensions");
  }
  TORCH_CHECK(
      !grouped || (key.size(-3) > 0 && value.size(-3) > 0),
      "attention: expected at least one head of keys and values");
}

std::vector<ArgumentCheck> argument_checks(const c10::FunctionSchema& schema) {
  std::vector<ArgumentCheck> checks;
  const std::string& op = schema.name();
  const auto& arguments = schema.arguments();
  const auto check = [&](std::size_t place, std::int64_t most) {
    checks.emplace_back([place, most, name = arguments[place].name()](const Stack& stack) {
      check_in_range(stack.at(place), most, name);
    });
  };
  constexpr std::string_view kSizes[] = {"padding", "pad",      "output_size",   "kernel_size",
                                         "stride",  "dilation", "output_padding"};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i].name();
    if (std::ranges::find(kSizes, name) != std::end(kSizes)) {
      check(i, kMaxSize);
    }
    if (name == "padding" && op.find("ion_pad") != std::string::npos) {
      checks.emplace_back([i, count = *arguments[i].N()](const Stack& stack) {
        TORCH_CHECK(
            std::ssize(stack.at(i).toIntVector()) == count, "padding: expected ", count,
            " numbers");
      });
    }
    if (name == "sections" || name == "chunks") {
      check(i, kMaxParts);
    }
    if (name.starts_with("scale") && op.find("upsample") != std::string::npos) {
      checks.emplace_back([i](const Stack& stack) {
        const c10::IValue& scales = stack.at(i);
        const auto check_scale = [](double scale) {
          TORCH_CHECK(
              scale >= 1 / kMaxScale && scale <= kMaxScale, "scale_factor: expected ",
              1 / kMaxScale, " to ", kMaxScale, ", got ", scale);
        };
        if (scales.isDoubleList()) {
          std::ranges::for_each(scales.toDoubleVector(), check_scale);
        } else if (!scales.isNone()) {
          check_scale(scales.toScalar().toDouble());
        }
      });
    }
    if (name == "n" && op.ends_with("matrix_power")) {
      check(i, kMaxPower);
    }
    if (name == "step" && op == "aten::arange") {
      checks.emplace_back([i](const Stack& stack) {
        // In an integer type, a step below 1 would become 0.
        const double step = stack.at(i).toScalar().toDouble();
        const c10::IValue& type = stack.at(i + 1);
        TORCH_CHECK(
            std::abs(step) >= 1 || !type.isInt() ||
                !c10::isIntegralType(static_cast<at::ScalarType>(type.toInt()), true),
            "step: expected at least 1 for integers, got ", step);
      });
    }
  }
  const std::map<std::string, std::int64_t> gates = {
      {"aten::lstm", 4}, {"aten::gru", 3}, {"aten::rnn_tanh", 1}, {"aten::rnn_relu", 1}};
  if (const auto of = gates.find(op); of != gates.end()) {
    checks.emplace_back([count = of->second](const Stack& s) { check_recurrent(s, count); });
  }
  if (op == "aten::batch_norm" || op == "aten::instance_norm") {
    checks.emplace_back([first = op == "aten::batch_norm" ? 0 : 2](const Stack& stack) {
      check_values_per_channel(stack.at(0).toTensor(), first, stack.at(5).toBool());
    });
  }
  if (op == "aten::scaled_dot_product_attention") {
    checks.emplace_back([](const Stack& stack) {
      check_attention(
          stack.at(0).toTensor(), stack.at(1).toTensor(), stack.at(2).toTensor(),
          stack.at(7).toBool());
    });
  }
  return checks;
}

bool is_allowed(const c10::FunctionSchema& schema) {
  static const std::set<std::string> allowed = [] {
    std::set<std::string> names;
    for (const std::string& line : split_text(std::string(operators_file()), '\n')) {
      const std::vector<std::string> words = split_text(line, ' ');
      if (!line.starts_with('#')) {
        names.insert(words.begin(), words.end());
      }
    }
    return names;
  }();
  constexpr std::string_view kAten = "aten::";
  if (!schema.name().starts_with(kAten)) {
    return false;
  }
  const std::string name = schema.name().substr(kAten.size());
  const bool in_place = name.ends_with("_") && !name.ends_with("__");
  if (!allowed.contains(name) && !(in_place && allowed.contains(name.substr(0, name.size() - 1)))) {
    return false;
  }
  // Refuses variants to which the caller passes the result's memory, or a packed sequence with
  // unchecked lengths.
  const auto& arguments = schema.arguments();
  return schema.overload_name() != "data" && std::ranges::none_of(arguments, &c10::Argument::is_out);
}

}  // namespace abtrain::nn
