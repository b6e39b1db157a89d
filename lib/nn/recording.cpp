#include "nn/recording.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/item.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "nn/exported/graph.h"

namespace abtrain::nn {

namespace {

using nlohmann::ordered_json;

// Numbers the tensors of a forward pass; two are the same if they are one TensorImpl.
class Numbering {
 public:
  // Returns the tensor's number, or the result of `unknown` if it has none.
  std::int64_t of(const at::Tensor& tensor, const auto& unknown) {
    const auto found = numbers_.find(tensor.unsafeGetTensorImpl());
    return found != numbers_.end() ? found->second : unknown(tensor);
  }
  void set(const at::Tensor& tensor, std::int64_t number) {
    numbers_[tensor.unsafeGetTensorImpl()] = number;
    kept_.push_back(tensor);  // so that no later tensor gets its address
  }

 private:
  std::map<const c10::TensorImpl*, std::int64_t> numbers_;
  std::vector<at::Tensor> kept_;
};

// The Python name of a type in PyTorch.
std::string name_of(at::ScalarType type) {
  return std::string(c10::getDtypeNames(type).first);
}

// An argument that is a dtype or a memory format.
ordered_json named_argument(c10::TypeKind kind, const c10::IValue& value) {
  switch (kind) {
    case c10::TypeKind::ScalarTypeType:
      return {{"dtype", name_of(value.toScalarType())}};
    case c10::TypeKind::MemoryFormatType:
      switch (value.toMemoryFormat()) {
        case at::MemoryFormat::Contiguous:
          return {{"memory_format", "contiguous_format"}};
        case at::MemoryFormat::ChannelsLast:
          return {{"memory_format", "channels_last"}};
        case at::MemoryFormat::ChannelsLast3d:
          return {{"memory_format", "channels_last_3d"}};
        default:
          return {{"memory_format", "preserve_format"}};
      }
    default:  // a layout, a device or a generator: as the input's
      return nullptr;
  }
}

// Records the operators of one forward pass.
class Recorder {
 public:
  Recorder(const std::vector<std::pair<std::string, at::Tensor>>& tensors, const at::Tensor& input)
      : next_(1 + std::ssize(tensors)) {
    numbers_.set(input, 0);
    for (std::int64_t i = 0; i < std::ssize(tensors); ++i) {
      numbers_.set(tensors[static_cast<std::size_t>(i)].second, i + 1);
    }
  }

  // PyTorch swallows exceptions from its callbacks, so this keeps them.
  void guard(const auto& work) {
    try {
      if (!failure_) {
        work();
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

  void begin(const at::RecordFunction& call) {
    if (depth_++ > 0) {  // nested in another operator
      return;
    }
    const auto schema = call.operator_schema();
    ABT_CHECK(schema, Config, "the step '{}' is no operator of PyTorch", call.name());
    node_ = {{"op", schema->name()}, {"overload", schema->overload_name()}};
    ordered_json arguments = ordered_json::array();
    for (std::size_t i = 0; i < call.inputs().size(); ++i) {
      arguments.push_back(argument(call.inputs()[i], *schema->arguments()[i].real_type()));
    }
    node_["arguments"] = arguments;
  }
  void end(const at::RecordFunction& call) {
    if (--depth_ > 0) {
      return;
    }
    ordered_json outputs = ordered_json::array();
    const auto add = [&](const at::Tensor& tensor) {
      outputs.push_back(next_);
      numbers_.set(tensor, next_++);
    };
    for (const c10::IValue& value : call.outputs()) {
      if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) {
          add(tensor);
        }
        node_["lists"] = true;
      } else if (value.isTensor() && value.toTensor().defined()) {
        add(value.toTensor());
      } else {
        outputs.push_back(nullptr);
      }
    }
    node_["outputs"] = outputs;
    nodes_.push_back(std::move(node_));
  }

  std::int64_t number(const at::Tensor& tensor) {
    return numbers_.of(tensor, [&](const at::Tensor& unknown) {
      constants_.push_back(unknown);
      const std::int64_t number = -std::ssize(constants_);
      numbers_.set(unknown, number);
      return number;
    });
  }
  ordered_json& nodes() {
    return nodes_;
  }
  // Tensors that the pass takes from elsewhere, numbered -1, -2, ...
  const std::vector<at::Tensor>& constants() const {
    return constants_;
  }

 private:
  ordered_json tensors(const auto& list) {
    ordered_json all = ordered_json::array();
    for (const at::Tensor& tensor : list) {
      all.push_back(tensor.defined() ? ordered_json(number(tensor)) : ordered_json(nullptr));
    }
    return {{"tensors", all}};
  }
  ordered_json argument(const c10::IValue& value, const c10::Type& declared) {
    const c10::Type& type = declared.kind() == c10::TypeKind::OptionalType
                                ? *declared.castRaw<c10::OptionalType>()->getElementType()
                                : declared;
    if (value.isNone() || (value.isTensor() && !value.toTensor().defined())) {
      return nullptr;
    }
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      // A wrapped number (a scalar that PyTorch made a tensor) is recorded as a plain number.
      return tensor.unsafeGetTensorImpl()->is_wrapped_number()
                 ? argument(c10::IValue(tensor.item()), type)
                 : ordered_json{{"tensor", number(tensor)}};
    }
    if (value.isTensorList()) {
      return tensors(value.toTensorVector());
    }
    if (value.isBool()) {
      return {{"bool", value.toBool()}};
    }
    if (value.isDouble()) {
      return {{"float", formatted("{}", value.toDouble())}};
    }
    if (value.isComplexDouble()) {
      const c10::complex<double> number = value.toComplexDouble();
      return {{"complex", {formatted("{}", number.real()), formatted("{}", number.imag())}}};
    }
    if (value.isString()) {
      return {{"text", value.toStringRef()}};
    }
    if (value.isInt() || value.isSymInt()) {
      const auto kind = type.kind();
      const bool counts = kind == c10::TypeKind::IntType || kind == c10::TypeKind::NumberType ||
                          kind == c10::TypeKind::SymIntType || kind == c10::TypeKind::TensorType;
      return counts
                 ? ordered_json{{"int", value.isInt() ? value.toInt() : value.toSymInt().expect_int()}}
                 : named_argument(type.kind(), value);
    }
    if (value.isDevice() || value.isGenerator()) {
      return nullptr;  // as the input's
    }
    ABT_CHECK(
        value.isList(), Config,
        "the step {} has an argument of the type {}, which cannot be exported",
        node_["op"].get<std::string>(), value.tagKind());
    ordered_json items = ordered_json::array();
    const char* kind = "ints";
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor() || item.isNone()) {
        kind = "tensors";
        items.push_back(
            item.isTensor() && item.toTensor().defined() ? ordered_json(number(item.toTensor()))
                                                         : ordered_json(nullptr));
      } else if (item.isDouble()) {
        kind = "floats";
        items.push_back(formatted("{}", item.toDouble()));
      } else if (item.isBool()) {
        kind = "bools";
        items.push_back(item.toBool());
      } else {
        items.push_back(item.isInt() ? item.toInt() : item.toSymInt().expect_int());
      }
    }
    return {{kind, items}};
  }

  Numbering numbers_;
  std::int64_t next_;
  int depth_ = 0;
  ordered_json node_;
  ordered_json nodes_ = ordered_json::array();
  std::vector<at::Tensor> constants_;
  std::exception_ptr failure_;
};

// The recorder of this thread's pass. Global, because PyTorch's callbacks are functions without
// state.
thread_local Recorder* recorder_here = nullptr;

class Listening {
 public:
  explicit Listening(Recorder& recorder) {
    recorder_here = &recorder;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
              recorder_here->guard([&] { recorder_here->begin(call); });
              return nullptr;
            },
            [](const at::RecordFunction& call, at::ObserverContext*) {
              recorder_here->guard([&] { recorder_here->end(call); });
            })
            .needsInputs(true)
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION}));
  }
  ~Listening() {
    at::removeCallback(handle_);
    recorder_here = nullptr;
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  at::CallbackHandle handle_ = 0;
};

// The input sizes of a forward pass: examples, and tokens per example.
struct Probe {
  std::int64_t examples, tokens;
};

struct Recorded {
  Probe probe;
  ordered_json nodes;
  ordered_json output;
  ordered_json sizes;  // of the input
  std::vector<at::Tensor> constants;
};

// Returns the formula [c, b, t, bt] (recording.h) of a number that had these values in the passes.
// The passes' (examples, tokens) are (2, T), (3, T), (5, T) and, if T varies, (2, T-1), (3, T-1),
// (3, T-2). The third and the sixth check the formula that follows from the others.
ordered_json formula(const std::vector<Recorded>& passes, const std::vector<std::int64_t>& found) {
  const std::int64_t t0 = passes[0].probe.tokens, b0 = passes[0].probe.examples;
  std::int64_t t = 0, bt = 0;
  if (passes.size() > 3) {
    const std::int64_t few = found[0] - found[3], many = found[1] - found[4];
    bt = many - few;
    t = few - b0 * bt;
  }
  const std::int64_t b = found[1] - found[0] - bt * t0;
  const std::int64_t c = found[0] - b * b0 - t * t0 - bt * b0 * t0;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const auto [examples, tokens] = passes[i].probe;
    ABT_CHECK(
        c + b * examples + t * tokens + bt * examples * tokens == found[i], Config,
        "a number of a step depends on the sizes of a batch in a way that cannot be exported");
  }
  return b == 0 && t == 0 && bt == 0 ? ordered_json(c) : ordered_json({c, b, t, bt});
}

// Merges the JSON trees recorded in several forward passes into one that describes them all:
// integers that differ between passes become formulas. Throws Error(Config) if the trees differ
// otherwise.
ordered_json merged(const std::vector<Recorded>& passes, const std::vector<ordered_json>& trees) {
  const ordered_json& first = trees[0];
  const bool alike = std::ranges::all_of(trees, [&](const ordered_json& tree) {
    return tree.type() == first.type() && tree.size() == first.size();
  });
  constexpr const char* kDiffer = "the model's steps depend on the number of examples or tokens";
  ABT_CHECK(alike, Config, "{}", kDiffer);
  if (first.is_structured()) {
    ordered_json result = first;
    for (auto item = result.items().begin(); item != result.items().end(); ++item) {
      std::vector<ordered_json> parts;
      for (const ordered_json& tree : trees) {
        parts.push_back(first.is_object() ? tree.at(item.key()) : tree[std::stoul(item.key())]);
      }
      item.value() = merged(passes, parts);
    }
    return result;
  }
  if (first.is_number_integer()) {
    std::vector<std::int64_t> found;
    for (const ordered_json& tree : trees) {
      found.push_back(tree.get<std::int64_t>());
    }
    return formula(passes, found);
  }
  ABT_CHECK(
      std::ranges::all_of(trees, [&](const ordered_json& tree) { return tree == first; }), Config,
      "{}", kDiffer);
  return first;
}

std::vector<std::pair<std::string, at::Tensor>> tensors_of(Model& model) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const NamedWeight& w : model.weights()) {
    if (!w.weight->is_factored()) {
      all.emplace_back(w.name, w.weight->dense);
      continue;
    }
    if (w.weight->rest.defined()) {
      all.emplace_back(w.name + ".rest", w.weight->rest);
    }
    all.emplace_back(w.name + ".inner", w.weight->inner);
    all.emplace_back(w.name + ".outer", w.weight->outer);
  }
  for (const NamedParameter& p : model.parameters()) {
    all.emplace_back(p.name, *p.tensor);
  }
  for (const NamedBuffer& b : model.buffers()) {
    all.emplace_back(b.name, *b.tensor);
  }
  return all;
}

at::Tensor input_of(const Model& model, const data::ExampleShape& shape, const Probe& probe) {
  if (shape.context > 0) {
    return at::zeros({probe.examples, probe.tokens}, at::kLong);
  }
  const bool is_image = shape.sizes.empty() || shape.sizes.size() == 3;
  if (!is_image && model.file_form().library == kExportedLibrary) {
    std::vector<std::int64_t> sizes = shape.sizes;
    sizes.insert(sizes.begin(), probe.examples);
    return at::zeros(sizes);  // as the user's module takes it
  }
  return shape.sizes.size() == 1  // rows of numbers
             ? at::zeros({probe.examples, shape.sizes[0]})
             : at::zeros({probe.examples, shape.channels, shape.height, shape.width})
                   .contiguous(at::MemoryFormat::ChannelsLast);
}

Recorded record_once(
    Model& model, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
    const data::ExampleShape& shape, const Probe& probe) {
  const at::Tensor input = input_of(model, shape, probe);
  Recorder recorder(tensors, input);
  at::Tensor output;
  {
    const Listening listening(recorder);
    output = model.forward_plain(input);
  }
  recorder.rethrow();
  const std::int64_t number = recorder.number(output);
  return {
      probe, std::move(recorder.nodes()), number, ordered_json(input.sizes().vec()),
      recorder.constants()};
}

}  // namespace

Recording record(Model& model, const data::ExampleShape& shape) {
  const at::NoGradGuard no_grad;
  Recording recording;
  recording.tensors = tensors_of(model);
  const std::int64_t context = shape.context;
  std::vector<Recorded> passes;
  const auto probe = [&](std::int64_t examples, std::int64_t tokens) {
    passes.push_back(record_once(model, recording.tensors, shape, {examples, tokens}));
  };
  const auto part = [&](ordered_json Recorded::*member) {
    std::vector<ordered_json> trees;
    for (const Recorded& pass : passes) {
      trees.push_back(pass.*member);
    }
    return merged(passes, trees);
  };
  const auto write_steps = [&] {
    recording.graph["input"] = {
        {"dtype", context > 0 ? "int64" : "float32"}, {"sizes", part(&Recorded::sizes)}};
    recording.graph["nodes"] = part(&Recorded::nodes);
    recording.graph["output"] = part(&Recorded::output);
  };
  for (const std::int64_t examples : {2, 3, 5}) {
    probe(examples, context);
  }
  try {
    if (context > 3) {
      probe(2, context - 1);
      probe(3, context - 1);
      probe(3, context - 2);
    }
    write_steps();
  } catch (const Error&) {  // the model takes rows of one length only
    if (passes.size() == 3 && context <= 3) {
      throw;
    }
    passes.resize(3);
    write_steps();
  }
  ordered_json tensors = ordered_json::array();
  const auto add = [&](const std::string& name, const at::Tensor& tensor, std::int64_t value) {
    const auto named = [&](const auto& other) { return name == other.name; };
    const bool is_trained = value > 0 && std::ranges::none_of(model.buffers(), named);
    tensors.push_back(
        {{"name", name},
         {"dtype", name_of(tensor.scalar_type())},
         {"value", value},
         {"is_trained", is_trained}});
  };
  for (const auto& [name, tensor] : recording.tensors) {
    add(name, tensor, 1 + std::ssize(tensors));
  }
  std::int64_t count = 0;
  const auto& named = model.file_form().constants;
  for (const at::Tensor& constant : passes[0].constants) {
    ++count;
    ABT_CHECK(
        !constant.is_complex(), Config, "a constant has complex numbers, which cannot be exported");
    const auto known = std::ranges::find_if(
        named, [&](const FileForm::Constant& one) { return one.tensor.is_same(constant); });
    add(known == named.end() ? formatted("constant_{}", count) : known->name, constant, -count);
    recording.tensors.emplace_back(
        tensors.back()["name"],
        constant.scalar_type() == at::kDouble ? constant.contiguous().view(at::kLong) : constant);
  }
  recording.graph["tensors"] = tensors;
  return recording;
}

}  // namespace abtrain::nn
