#include "nn/exported/steps.h"

#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "base/error.h"
#include "base/mapped.h"
#include "base/text.h"
#include "nn/dropout.h"
#include "nn/exported/mixed_types.h"
#include "nn/exported/operators.h"
#include "nn/gelu.h"

namespace abtrain::nn {

namespace {

c10::TypePtr item_type(const c10::TypePtr& type) {
  if (const auto optional = type->cast<c10::OptionalType>()) {
    return item_type(optional->getElementType());
  }
  const auto list = type->cast<c10::ListType>();
  return list ? list->getElementType() : type;
}

// An operator, called through PyTorch's dispatcher.
class OperatorCall {
 public:
  explicit OperatorCall(const GraphNode& node)
      : op_(*node.op),
        checks_(argument_checks(node.op->schema())),
        mixed_types_(mixed_types(node)),
        outputs_(node.outputs),
        call_(node.norm_call),
        calls_(node.norm_calls) {
    const GraphArgument* const mean = node.find("running_mean");
    const bool has_statistics = mean != nullptr && mean->value();
    const auto& schema = op_.schema().arguments();
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      const GraphArgument& argument = node.arguments[i];
      stack_.push_back(argument.constant);
      if (argument.is_device || argument.is_list || !argument.values.empty()) {
        read_.push_back({i, argument, item_type(schema[i].type())});
      }
      const bool trains = argument.name == "training" || argument.name == "train" ||
                          argument.name == "use_input_stats";
      if (trains && argument.constant.isBool() && argument.constant.toBool()) {
        // A norm without running statistics uses the batch's, even in evaluations.
        if (has_statistics || mean == nullptr) {
          training_.push_back(i);
        }
      } else if (argument.name == "momentum" && has_statistics) {
        momentum_ = static_cast<int>(i);
      } else if (schema[i].type()->isSubtypeOf(
                     *c10::OptionalType::create(c10::GeneratorType::get()))) {
        generator_ = static_cast<int>(i);
      }
    }
  }

  void operator()(const Frame& frame) const {
    torch::jit::Stack stack = stack_;
    for (const Read& read : read_) {
      stack[read.place] = taken(frame, read);
    }
    const bool collects = frame.pass.statistics_share > 0 && momentum_ >= 0;
    if (!frame.pass.training && !collects) {
      for (const std::size_t place : training_) {
        stack[place] = false;
      }
    }
    if (collects) {
      // As PyTorch's momentum=None: each call counts as a batch.
      const double before = 1 / frame.pass.statistics_share - 1;  // batches
      stack[static_cast<std::size_t>(momentum_)] = 1 / (before * calls_ + call_ + 1);
    }
    if (generator_ >= 0 && frame.pass.random.defined()) {
      stack[static_cast<std::size_t>(generator_)] = frame.pass.random;
    }
    if (frame.pass.precision.type != at::kFloat) {
      cast_mixed(stack, mixed_types_);
    }
    for (const ArgumentCheck& check : checks_) {
      check(stack);
    }
    op_.callBoxed(stack);
    if (stack.size() == 1 && stack[0].isTensorList()) {
      const auto items = stack[0].toTensorVector();
      stack.assign(items.begin(), items.end());
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      frame.store(outputs_[i], std::move(stack.at(i)));
    }
  }

 private:
  struct Read {
    std::size_t place;
    GraphArgument argument;
    c10::TypePtr type;  // type of the argument or of a list's items
  };

  static c10::IValue taken(const Frame& frame, const Read& read) {
    const GraphArgument& argument = read.argument;
    if (!argument.is_list) {
      const c10::IValue value = frame.value_of(argument);
      return read.type->kind() == c10::TypeKind::TensorType ? tensor_or_none(value) : value;
    }
    const auto item = [&](std::size_t i) -> const c10::IValue& {
      return argument.values[i] >= 0 ? frame.values[static_cast<std::size_t>(argument.values[i])]
                                     : argument.items[i];
    };
    const auto list = [&]<class T>(c10::List<T> items, const auto& converted) -> c10::IValue {
      for (std::size_t i = 0; i < argument.values.size(); ++i) {
        items.push_back(converted(item(i)));
      }
      return items;
    };
    using c10::IValue;
    switch (read.type->kind()) {
      case c10::TypeKind::TensorType:
        return list(c10::List<at::Tensor>(), [](const IValue& v) { return v.toTensor(); });
      case c10::TypeKind::OptionalType:
        return list(c10::List<std::optional<at::Tensor>>(), [](const IValue& v) {
          return v.toOptional<at::Tensor>();
        });
      case c10::TypeKind::FloatType:
        return list(c10::List<double>(), [](const IValue& v) { return v.toScalar().toDouble(); });
      case c10::TypeKind::BoolType:
        return list(c10::List<bool>(), [](const IValue& v) { return v.toBool(); });
      default:
        return list(c10::List<std::int64_t>(), [](const IValue& v) { return v.toInt(); });
    }
  }

  c10::OperatorHandle op_;
  std::vector<ArgumentCheck> checks_;
  MixedTypes mixed_types_;
  torch::jit::Stack stack_;  // with all constants in place
  std::vector<Read> read_;
  std::vector<std::size_t> training_;  // flags that are false in evaluations
  int momentum_ = -1;
  int generator_ = -1;
  std::vector<ValueId> outputs_;
  int call_;   // of a norm: GraphNode::norm_call
  int calls_;  // of a norm: GraphNode::norm_calls
};

// Makes a step that computes the node's only value.
Step compute(const GraphNode& node, std::function<c10::IValue(const Frame&)> function) {
  return [output = node.outputs.at(0), function = std::move(function)](const Frame& frame) {
    frame.store(output, function(frame));
  };
}

// Python's arithmetic on sizes: on integers, or on floats if an operand is not an integer.
using Whole = std::int64_t;

Whole whole_number(double value) {
  ABT_CHECK(
      std::abs(value) < 1e15, Config, "model.file: expected sizes below 1e15, got one of {}",
      value);
  return static_cast<Whole>(value);
}

template <class Operation>
Whole exact(Whole a, Whole b) {
  whole_number(Operation()(static_cast<double>(a), static_cast<double>(b)));  // throws on overflow
  return Operation()(a, b);
}

Whole divided(Whole a, Whole b, bool rest) {
  ABT_CHECK(b != 0 && b != -1, Config, "model.file: a size is divided by {}", b);
  const bool rounds = a % b != 0 && (a < 0) != (b < 0);  // Python rounds down, C++ toward 0
  return rest ? a % b + (rounds ? b : 0) : a / b - static_cast<Whole>(rounds);
}

struct Arithmetic {
  std::string_view name;
  Whole (*of_integers)(Whole, Whole);
  double (*of_floats)(double, double);
};
constexpr Arithmetic kArithmetic[] = {
    {"add", exact<std::plus<>>, [](double a, double b) { return a + b; }},
    {"sub", exact<std::minus<>>, [](double a, double b) { return a - b; }},
    {"mul", exact<std::multiplies<>>, [](double a, double b) { return a * b; }},
    {"floordiv", [](Whole a, Whole b) { return divided(a, b, false); },
     [](double a, double b) { return std::floor(a / b); }},
    {"mod", [](Whole a, Whole b) { return divided(a, b, true); },
     [](double a, double b) { return a - b * std::floor(a / b); }},
    {"sym_max", [](Whole a, Whole b) { return std::max(a, b); },
     [](double a, double b) { return std::max(a, b); }},
    {"sym_min", [](Whole a, Whole b) { return std::min(a, b); },
     [](double a, double b) { return std::min(a, b); }}};

// Applies a function of sizes. Returns None if it is not supported.
c10::IValue compute_symbol(const std::string& name, const std::vector<c10::IValue>& x) {
  const auto number = [&](std::size_t i) { return x.at(i).toScalar().toDouble(); };
  const bool integers =
      std::ranges::all_of(x, [](const c10::IValue& v) { return v.isInt() || v.isBool(); });
  const auto* const known = std::ranges::find(kArithmetic, name, &Arithmetic::name);
  if (known != std::end(kArithmetic)) {
    return integers ? c10::IValue(known->of_integers(x.at(0).toInt(), x.at(1).toInt()))
                    : c10::IValue(known->of_floats(number(0), number(1)));
  }
  if (name == "neg") {
    return integers ? c10::IValue(exact<std::minus<>>(0, x.at(0).toInt()))
                    : c10::IValue(-number(0));
  }
  if (name == "truediv") {
    return number(0) / number(1);
  }
  if (name == "pow") {
    const double power = std::pow(number(0), number(1));
    return integers && number(1) >= 0 ? c10::IValue(whole_number(power)) : c10::IValue(power);
  }
  if (name == "sym_float") {
    return number(0);
  }
  if (name == "floor") {
    return whole_number(std::floor(number(0)));
  }
  if (name == "ceil") {
    return whole_number(std::ceil(number(0)));
  }
  if (name == "trunc" || name == "sym_int") {
    return whole_number(std::trunc(number(0)));
  }
  return {};
}

// Dropout with masks from the pass's generator. PyTorch's operators would use the process's
// generator, which all workers share.
Step make_dropout(const GraphNode& node) {
  const GraphArgument input = node.arguments.at(0);
  const GraphArgument* const train = node.find("train");
  const double rate = rate_of(node, "p");
  const bool drops =
      rate > 0 && train != nullptr && train->constant.isBool() && train->constant.toBool();
  const bool in_place = node.target.ends_with("_");
  const bool whole_channels = node.target.starts_with("aten::feature_dropout");
  return compute(node, [=](const Frame& frame) -> c10::IValue {
    at::Tensor x = frame.tensor_of(input);
    if (!drops || !frame.pass.training) {
      return x;
    }
    const at::Tensor result =
        rate < 1 ? dropped(x, rate, whole_channels ? 2 : x.dim(), frame.pass.random) : x.mul(0);
    return in_place ? x.copy_(result) : result;
  });
}

// Suppresses the warning "Dropout mask should only be used for testing purposes".
class Quiet : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

// Attention with dropout, by a mask from the pass's generator.
Step make_attention(const GraphNode& node) {
  GraphNode plain = node;
  plain.arguments.at(4).constant = 0.0;
  // a: the operator's arguments, in the order of its schema.
  return [a = node.arguments, output = node.outputs.at(0), rate = rate_of(node, "dropout_p"),
          plain = OperatorCall(plain)](const Frame& frame) {
    if (!frame.pass.training) {
      plain(frame);
      return;
    }
    const at::Tensor query = frame.tensor_of(a.at(0));
    const at::Tensor key = frame.tensor_of(a.at(1));
    const at::Tensor value = frame.tensor_of(a.at(2));
    const bool grouped = frame.value_of(a.at(7)).toBool();
    check_attention(query, key, value, grouped);
    std::vector<std::int64_t> sizes = query.sizes().vec();
    sizes.back() = key.size(-2);
    const at::Tensor keeps =
        at::empty(sizes, query.options().dtype(at::kBool)).bernoulli_(1 - rate, frame.pass.random);
    const auto mask = frame.value_of(a.at(3));
    const auto scale = frame.value_of(a.at(6));
    Quiet quiet;
    const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
    const auto mixed = at::_scaled_dot_product_attention_math(
        query, key, value, mask.toOptional<at::Tensor>(), rate, frame.value_of(a.at(5)).toBool(),
        keeps, scale.toOptional<double>(), grouped);
    frame.store(output, std::get<0>(mixed));
  };
}

}  // namespace

void Frame::store(ValueId id, c10::IValue value) const {
  if (value.isTensor() && value.toTensor().defined()) {
    // Views count too: they take no memory, but operators on them take memory or time.
    const at::Tensor& tensor = value.toTensor();
    const double bytes =
        static_cast<double>(tensor.numel()) * static_cast<double>(tensor.itemsize());
    TORCH_CHECK(
        bytes <= most_bytes, "a result of ", tensor.sizes(), " would take ", human_bytes(bytes),
        ", but there are ", human_bytes(most_bytes));
  }
  if (id >= 0) {
    values[static_cast<std::size_t>(id)] = std::move(value);
  }
}

c10::IValue Frame::value_of(const GraphArgument& argument) const {
  if (argument.is_device) {
    return device;
  }
  const std::optional<ValueId> id = argument.value();
  return id && *id >= 0 ? values[static_cast<std::size_t>(*id)] : argument.constant;
}

at::Tensor Frame::tensor_of(const GraphArgument& argument) const {
  const c10::IValue value = value_of(argument);
  return value.isNone() ? at::Tensor() : value.toTensor();
}

double rate_of(const GraphNode& node, const char* name) {
  const GraphArgument* const argument = node.find(name);
  return argument != nullptr && argument->constant.isDouble() ? argument->constant.toDouble() : 0;
}

Step make_step(const GraphNode& node, bool as_laid_out, const std::string& path) {
  if (!node.op) {
    const std::string name = node.target.substr(node.target.find('.') + 1);
    const std::vector<GraphArgument> arguments = node.arguments;
    ABT_CHECK(
        node.outputs.size() == 1 &&
            !compute_symbol(name, std::vector<c10::IValue>(2, c10::IValue(1))).isNone(),
        Config, "model.file: {}: {}{} on sizes is not supported", path, node.target, node.where);
    return compute(node, [=](const Frame& frame) {
      return compute_symbol(name, mapped(arguments, [&](const GraphArgument& argument) {
                              return frame.value_of(argument);
                            }));
    });
  }
  const GraphArgument first = node.arguments.empty() ? GraphArgument{} : node.arguments[0];
  if (node.target == "aten::sym_size") {
    const std::int64_t dimension = node.arguments.at(1).constant.toInt();
    return compute(node, [=](const Frame& frame) {
      return c10::IValue(frame.tensor_of(first).size(dimension));
    });
  }
  const bool is_view_as = node.target == "aten::view_as";
  if (!as_laid_out && (is_view_as || node.target == "aten::view") &&
      node.op->schema().overload_name().empty()) {
    GraphNode reshape = node;
    reshape.op = c10::Dispatcher::singleton().findSchema(
        {is_view_as ? "aten::reshape_as" : "aten::reshape", ""});
    return OperatorCall(reshape);
  }
  if (node.target == "aten::gelu" && node.arguments.at(1).constant.isString() &&
      node.arguments[1].constant.toStringRef() == "tanh") {
    return compute(node, [=](const Frame& frame) {
      const at::Tensor& x = frame.tensor_of(first);
      const bool is_usual = frame.pass.plain || as_laid_out;  // gelu_tanh() returns rows
      return c10::IValue(is_usual ? at::gelu(x, "tanh") : gelu_tanh(x));
    });
  }
  if (node.target.starts_with("aten::dropout") ||
      node.target.starts_with("aten::feature_dropout")) {
    return make_dropout(node);
  }
  if (node.target == "aten::scaled_dot_product_attention" && rate_of(node, "dropout_p") > 0) {
    return make_attention(node);
  }
  if (node.target.starts_with("aten::empty") || node.target == "aten::new_empty") {
    // Zeroes the tensor, so that it does not contain old data of this process.
    return [empty = OperatorCall(node), output = node.outputs.at(0)](const Frame& frame) {
      empty(frame);
      frame.values[static_cast<std::size_t>(output)].toTensor().zero_();
    };
  }
  if (node.target == "aten::bernoulli_" && node.find("p") != nullptr) {
    // As in stochastic depth: in evaluations fills with p, so that the later division by p gives 1.
    return compute(node, [first, rate = node.arguments[1]](const Frame& frame) -> c10::IValue {
      at::Tensor x = frame.tensor_of(first);
      const double p = frame.value_of(rate).toScalar().toDouble();
      return frame.pass.training ? x.bernoulli_(p, frame.pass.random) : x.fill_(p);
    });
  }
  // In recurrent layers and attention, only dropout draws random numbers.
  const bool drops = node.find("dropout") != nullptr || node.find("dropout_p") != nullptr;
  ABT_CHECK(
      drops ? rate_of(node, "dropout") == 0 : !node.op->hasTag(at::Tag::nondeterministic_seeded),
      Config, "model.file: {}: operator {}{}: {}", path, node.target, node.where, kDrawsNumbers);
  return OperatorCall(node);
}

}  // namespace abtrain::nn
