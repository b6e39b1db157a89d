#include "nn/exported/steps.h"

#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "nn/dropout.h"
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
class Call : public Step {
 public:
  Call(const GraphNode& node, bool has_statistics)
      : op_(*node.op),
        outputs_(node.outputs),
        lists_output_(node.lists_output),
        returns_(op_.schema().returns().size()) {
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
        // Without running statistics, a norm uses those of the batch in evaluations too.
        if (has_statistics || node.find("running_mean") == nullptr) {
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

  void run(Frame& frame) const override {
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
      stack[static_cast<std::size_t>(momentum_)] = frame.pass.statistics_share;
    }
    if (generator_ >= 0 && frame.pass.random.defined()) {
      stack[static_cast<std::size_t>(generator_)] = frame.pass.random;
    }
    op_.callBoxed(stack);
    if (lists_output_) {
      const auto items = stack.at(0).toTensorVector();
      for (std::size_t i = 0; i < outputs_.size(); ++i) {
        store(frame, outputs_[i], items.at(i));
      }
      return;
    }
    for (std::size_t i = 0; i < outputs_.size() && i < returns_; ++i) {
      store(frame, outputs_[i], std::move(stack[i]));
    }
  }

 private:
  struct Read {
    std::size_t place;
    GraphArgument argument;
    c10::TypePtr type;  // of an item
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
    const std::size_t count = argument.values.size();
    switch (read.type->kind()) {
      case c10::TypeKind::TensorType: {
        c10::List<at::Tensor> list;
        for (std::size_t i = 0; i < count; ++i) {
          list.push_back(item(i).toTensor());
        }
        return list;
      }
      case c10::TypeKind::OptionalType: {
        c10::List<std::optional<at::Tensor>> list;
        for (std::size_t i = 0; i < count; ++i) {
          list.push_back(item(i).toOptional<at::Tensor>());
        }
        return list;
      }
      case c10::TypeKind::FloatType: {
        c10::List<double> list;
        for (std::size_t i = 0; i < count; ++i) {
          list.push_back(item(i).toScalar().toDouble());
        }
        return list;
      }
      case c10::TypeKind::BoolType: {
        c10::List<bool> list;
        for (std::size_t i = 0; i < count; ++i) {
          list.push_back(item(i).toBool());
        }
        return list;
      }
      default: {
        c10::List<std::int64_t> list;
        for (std::size_t i = 0; i < count; ++i) {
          list.push_back(item(i).toInt());
        }
        return list;
      }
    }
  }

  c10::OperatorHandle op_;
  torch::jit::Stack stack_;  // with all constants in place
  std::vector<Read> read_;
  std::vector<std::size_t> training_;  // flags that are false in evaluations
  int momentum_ = -1;
  int generator_ = -1;
  std::vector<ValueId> outputs_;
  bool lists_output_;
  std::size_t returns_;
};

// A step that computes one value by a function.
class Compute : public Step {
 public:
  using Function = std::function<c10::IValue(const Frame&)>;
  Compute(ValueId output, Function function) : output_(output), function_(std::move(function)) {}
  void run(Frame& frame) const override {
    store(frame, output_, function_(frame));
  }

 private:
  ValueId output_;
  Function function_;
};

// Python's arithmetic on sizes.
c10::IValue compute_symbol(const std::string& name, const std::vector<c10::IValue>& x) {
  const auto number = [&](std::size_t i) { return x.at(i).toScalar().toDouble(); };
  const auto whole = [&](std::size_t i) { return x.at(i).toInt(); };
  const bool integers =
      std::ranges::all_of(x, [](const c10::IValue& v) { return v.isInt() || v.isBool(); });
  const auto floor_div = [](std::int64_t a, std::int64_t b) {
    ABT_CHECK(b != 0 && b != -1, Config, "model.file: a size is divided by {}", b);
    return a / b - static_cast<std::int64_t>(a % b != 0 && (a < 0) != (b < 0));
  };
  const auto either = [&](auto integer, auto real) -> c10::IValue {
    return integers ? c10::IValue(integer(whole(0), whole(1)))
                    : c10::IValue(real(number(0), number(1)));
  };
  using Wide = std::uint64_t;  // wraps around instead of overflowing
  const auto wrapped = [](Wide value) { return static_cast<std::int64_t>(value); };
  if (name == "add") {
    return either(
        [&](auto a, auto b) { return wrapped(static_cast<Wide>(a) + static_cast<Wide>(b)); },
        [](double a, double b) { return a + b; });
  }
  if (name == "sub") {
    return either(
        [&](auto a, auto b) { return wrapped(static_cast<Wide>(a) - static_cast<Wide>(b)); },
        [](double a, double b) { return a - b; });
  }
  if (name == "mul") {
    return either(
        [&](auto a, auto b) { return wrapped(static_cast<Wide>(a) * static_cast<Wide>(b)); },
        [](double a, double b) { return a * b; });
  }
  if (name == "floordiv") {
    return either(floor_div, [](double a, double b) { return std::floor(a / b); });
  }
  if (name == "mod") {
    return either(
        [&](auto a, auto b) {
          return wrapped(
              static_cast<Wide>(a) - static_cast<Wide>(b) * static_cast<Wide>(floor_div(a, b)));
        },
        [](double a, double b) { return a - b * std::floor(a / b); });
  }
  if (name == "sym_max") {
    return either(
        [](auto a, auto b) { return std::max(a, b); },
        [](double a, double b) { return std::max(a, b); });
  }
  if (name == "sym_min") {
    return either(
        [](auto a, auto b) { return std::min(a, b); },
        [](double a, double b) { return std::min(a, b); });
  }
  if (name == "neg") {
    return integers ? c10::IValue(wrapped(Wide{0} - static_cast<Wide>(whole(0))))
                    : c10::IValue(-number(0));
  }
  if (name == "truediv") {
    return number(0) / number(1);
  }
  if (name == "pow") {
    const double power = std::pow(number(0), number(1));
    return integers && number(1) >= 0 && std::abs(power) < 1e15
               ? c10::IValue(static_cast<std::int64_t>(power))
               : c10::IValue(power);
  }
  if (name == "sym_float") {
    return number(0);
  }
  const auto rounded = [&](double value) -> c10::IValue {
    ABT_CHECK(std::abs(value) < 1e15, Config, "model.file: a size of {}", value);
    return static_cast<std::int64_t>(value);
  };
  if (name == "floor" || name == "ceil" || name == "trunc" || name == "sym_int") {
    return rounded(
        name == "floor"  ? std::floor(number(0))
        : name == "ceil" ? std::ceil(number(0))
                         : std::trunc(number(0)));
  }
  return {};
}

double rate_of(const GraphNode& node, const char* name) {
  const GraphArgument* const argument = node.find(name);
  return argument != nullptr && argument->constant.isDouble() ? argument->constant.toDouble() : 0;
}

// Dropout with masks from the pass's generator: PyTorch's operators would take the process's own,
// which all workers share.
std::unique_ptr<Step> make_dropout(const GraphNode& node) {
  const GraphArgument input = node.arguments.at(0);
  const GraphArgument* const train = node.find("train");
  const double rate = rate_of(node, "p");
  const bool drops =
      rate > 0 && train != nullptr && train->constant.isBool() && train->constant.toBool();
  const bool in_place = node.target.ends_with("_");
  const bool whole_channels = node.target.starts_with("aten::feature_dropout");
  return std::make_unique<Compute>(node.outputs.at(0), [=](const Frame& frame) -> c10::IValue {
    at::Tensor x = frame.tensor_of(input);
    if (!drops || !frame.pass.training) {
      return x;
    }
    std::vector<std::int64_t> sizes = x.sizes().vec();
    if (whole_channels) {
      std::fill(sizes.begin() + std::min<std::ptrdiff_t>(2, x.dim()), sizes.end(), 1);
    }
    const at::Tensor result = rate < 1 ? dropped(x, rate, sizes, frame.pass.random) : x.mul(0);
    return in_place ? x.copy_(result) : result;
  });
}

// Swallows "Dropout mask should only be used for testing purposes".
class Quiet : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

// Attention with dropout: the same formula with a mask of our own.
std::unique_ptr<Step> make_attention(const GraphNode& node, const std::string& path) {
  const double rate = rate_of(node, "dropout_p");
  auto plain = std::make_shared<Call>(
      [&] {
        GraphNode same = node;
        for (GraphArgument& argument : same.arguments) {
          if (argument.name == "dropout_p") {
            argument.constant = 0.0;
          }
        }
        return same;
      }(),
      false);
  const std::vector<GraphArgument> a = node.arguments;
  ABT_CHECK(
      a.size() == 8, Config, "model.file: {}: {}{} has other arguments than expected", path,
      node.target, node.where);
  return std::make_unique<Compute>(node.outputs.at(0), [=](const Frame& frame) -> c10::IValue {
    if (!frame.pass.training) {
      Frame copy = frame;
      plain->run(copy);
      const ValueId output = node.outputs[0];
      return output < 0 ? c10::IValue() : frame.values[static_cast<std::size_t>(output)];
    }
    const at::Tensor query = frame.tensor_of(a[0]);
    const at::Tensor key = frame.tensor_of(a[1]);
    std::vector<std::int64_t> sizes = query.sizes().vec();
    sizes.back() = key.size(-2);
    const at::Tensor keeps =
        at::empty(sizes, query.options().dtype(at::kBool)).bernoulli_(1 - rate, frame.pass.random);
    const auto mask = frame.value_of(a[3]);
    const auto scale = frame.value_of(a[6]);
    Quiet quiet;
    const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
    return std::get<0>(at::_scaled_dot_product_attention_math(
        query, key, frame.tensor_of(a[2]), mask.toOptional<at::Tensor>(), rate,
        frame.value_of(a[5]).toBool(), keeps, scale.toOptional<double>(),
        frame.value_of(a[7]).toBool()));
  });
}

}  // namespace

void store(Frame& frame, ValueId id, c10::IValue value) {
  if (id >= 0) {
    frame.values[static_cast<std::size_t>(id)] = std::move(value);
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

std::unique_ptr<Step> make_step(const GraphNode& node, bool copies, const std::string& path) {
  if (!node.op) {
    const std::string name = node.target.substr(node.target.find('.') + 1);
    const std::vector<GraphArgument> arguments = node.arguments;
    ABT_CHECK(
        node.outputs.size() == 1 &&
            !compute_symbol(name, std::vector<c10::IValue>(2, c10::IValue(1))).isNone(),
        Config, "model.file: {}: {}{} on sizes is not supported", path, node.target, node.where);
    return std::make_unique<Compute>(node.outputs[0], [=](const Frame& frame) {
      std::vector<c10::IValue> given;
      for (const GraphArgument& argument : arguments) {
        given.push_back(frame.value_of(argument));
      }
      return compute_symbol(name, given);
    });
  }
  const GraphArgument first = node.arguments.empty() ? GraphArgument{} : node.arguments[0];
  if (node.target == "aten::sym_size") {
    const std::int64_t dimension = node.arguments.at(1).constant.toInt();
    return std::make_unique<Compute>(node.outputs.at(0), [=](const Frame& frame) {
      return c10::IValue(frame.tensor_of(first).size(dimension));
    });
  }
  if (node.target == "aten::view" && copies && node.op->schema().overload_name().empty()) {
    GraphNode reshape = node;
    reshape.op = c10::Dispatcher::singleton().findSchema({"aten::reshape", ""});
    return std::make_unique<Call>(reshape, false);
  }
  if (node.target == "aten::gelu" && node.arguments.at(1).constant.isString() &&
      node.arguments[1].constant.toStringRef() == "tanh") {
    return std::make_unique<Compute>(node.outputs.at(0), [=](const Frame& frame) {
      return c10::IValue(gelu_tanh(frame.tensor_of(first)));
    });
  }
  static const std::set<std::string> kDropouts = {
      "aten::dropout", "aten::dropout_", "aten::feature_dropout", "aten::feature_dropout_"};
  if (kDropouts.contains(node.target)) {
    return make_dropout(node);
  }
  if (node.target == "aten::scaled_dot_product_attention" && rate_of(node, "dropout_p") > 0) {
    return make_attention(node, path);
  }
  if (node.target == "aten::bernoulli_" && node.find("p") != nullptr) {
    // As in stochastic depth: what is later divided by p is 1 in evaluations.
    const GraphArgument rate = node.arguments[1];
    const ValueId output = node.outputs.at(0);
    return std::make_unique<Compute>(output, [=](const Frame& frame) -> c10::IValue {
      at::Tensor x = frame.tensor_of(first);
      const double p = frame.value_of(rate).toScalar().toDouble();
      return frame.pass.training ? x.bernoulli_(p, frame.pass.random) : x.fill_(p);
    });
  }
  // Recurrent layers and attention draw only what they drop.
  const bool drops = node.find("dropout") != nullptr || node.find("dropout_p") != nullptr;
  ABT_CHECK(
      drops ? rate_of(node, "dropout") == 0 : !node.op->hasTag(at::Tag::nondeterministic_seeded),
      Config,
      "model.file: {}: operator {}{} draws random numbers; expected only dropout, stochastic depth "
      "by bernoulli_ and dropout in attention to do so. Set its rate to 0, or apply nn.Dropout",
      path, node.target, node.where);
  const GraphArgument* const mean = node.find("running_mean");
  return std::make_unique<Call>(node, mean != nullptr && mean->reads());
}

}  // namespace abtrain::nn
