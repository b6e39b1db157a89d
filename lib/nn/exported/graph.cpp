#include "nn/exported/graph.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "nn/exported/flow.h"
#include "nn/exported/operators.h"

namespace abtrain::nn {

namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMaxNodes = 200'000;  // about 100 times as many as a large network has

// False if the value is the number of a type, layout or memory format that this program does not
// know: PyTorch uses these numbers as indices into tables.
bool names_a_type(const c10::IValue& value, const c10::Type& type) {
  if (type.kind() == c10::TypeKind::OptionalType) {
    return value.isNone() ||
           names_a_type(value, *type.expectRef<c10::OptionalType>().getElementType());
  }
  const std::int64_t number = value.isInt() ? value.toInt() : -1;
  switch (type.kind()) {
    case c10::TypeKind::ScalarTypeType:
      return is_exported_type(number);
    case c10::TypeKind::LayoutType:
      return number == static_cast<std::int64_t>(at::kStrided);
    case c10::TypeKind::MemoryFormatType:
      return number >= 0 && number < static_cast<std::int64_t>(at::MemoryFormat::NumOptions);
    default:
      return true;
  }
}

// Whether the operator is a check that the exporter has added for its example input.
bool is_assertion(std::string_view name) {
  return name.starts_with("_assert") || name.starts_with("sym_constrain") ||
         name == "_check_is_size";
}

// The layer and the last call in the user's own source, for messages.
std::string place_of(const ordered_json& node) {
  const auto metadata = node.find("metadata");
  if (metadata == node.end()) {
    return "";
  }
  std::string place;
  const std::vector<std::string> modules =
      split_text(metadata->value("nn_module_stack", std::string()), ';');
  const std::vector<std::string> last = split_text(modules.back(), ',');
  if (last.size() > 1 && !last[1].empty()) {
    place = formatted(" in layer '{}'", last[1]);
  }
  const std::vector<std::string> lines =
      split_text(metadata->value("stack_trace", std::string()), '\n');
  for (std::size_t i = lines.size(); i-- > 0;) {
    const std::string& line = lines[i];
    const std::size_t file = line.find("File \"");
    const std::size_t end = line.find("\", line ");
    if (file == std::string::npos || end == std::string::npos ||
        line.find("/torch/nn/") != std::string::npos ||
        line.find("File \"<eval_with_key>") != std::string::npos) {  // a line of generated code
      continue;
    }
    const std::string path = line.substr(file + 6, end - file - 6);
    place += formatted(
        " ({}:{}{})", path.substr(path.rfind('/') + 1),
        line.substr(end + 8, line.find(',', end + 8) - end - 8),
        i + 1 < lines.size() ? ": " + lines[i + 1].substr(std::min(
                                          lines[i + 1].find_first_not_of(' '), lines[i + 1].size()))
                             : "");
    break;
  }
  return printable(place);
}

// The names of the values in an argument or a result; "" for none.
std::vector<std::string> value_names(const ordered_json& union_of_values) {
  const auto [kind, what] = tagged(union_of_values);
  std::vector<std::string> names;
  if (kind == "as_tensors") {
    for (const ordered_json& item : what) {
      names.push_back(item.at("name").get<std::string>());
    }
  } else if (kind == "as_none" || kind == "as_optional_tensor") {
    names.emplace_back();
  } else {
    names.push_back(what.at(kind == "as_tensor" ? "name" : "as_name").get<std::string>());
  }
  return names;
}

class GraphReader {
 public:
  explicit GraphReader(const ExportArchive& archive) : archive_(archive) {}

  ExportedGraph read() {
    const ordered_json& module = archive_.program().at("graph_module");
    const ordered_json& graph = module.at("graph");
    read_inputs(module.at("signature"), graph);
    read_nodes(graph, {});
    read_output(module.at("signature"), graph);
    drop_unused(graph_, archive_.path());
    number_norm_calls(graph_);
    return std::move(graph_);
  }

 private:
  using Modes = GraphNode::Modes;

  ValueId define(const std::string& name) {
    const ValueId id = graph_.values++;
    archive_.check(
        names_.emplace(name, id).second,
        formatted("the value '{}' is defined twice", printable(name)));
    return id;
  }
  ValueId value(const std::string& name) const {
    const auto place = names_.find(name);
    archive_.check(
        place != names_.end(),
        formatted("the value '{}' is used before it is defined", printable(name)));
    return place->second;
  }

  void read_inputs(const ordered_json& signature, const ordered_json& graph) {
    const std::map<std::string, GraphTensor::Kind> kinds = {
        {"parameter", GraphTensor::Kind::Parameter},
        {"buffer", GraphTensor::Kind::Buffer},
        {"tensor_constant", GraphTensor::Kind::Constant}};
    for (const ordered_json& spec : signature.at("input_specs")) {
      const auto [kind, what] = tagged(spec);
      if (kind == "user_input") {
        ABT_CHECK(
            graph_.input < 0 && what.at("arg").contains("as_tensor"), Config,
            "model.file: {}: the model takes several inputs, or one that is not a tensor; expected "
            "a module whose forward() takes one tensor",
            archive_.path());
        const auto name = what.at("arg").at("as_tensor").at("name").get<std::string>();
        graph_.input = define(name);
        const ordered_json& sizes = graph.at("tensor_values").at(name).at("sizes");
        if (!sizes.empty()) {
          graph_.examples = std::max(1.0, hint_of(sizes[0]));
          batch_ = expression_of(sizes[0]);
        }
        if (sizes.size() > 1) {
          graph_.length = std::max(1.0, hint_of(sizes[1]));
          length_ = expression_of(sizes[1]);
        }
        graph_.input_meta = meta_of(graph, name);
        continue;
      }
      const auto known = kinds.find(kind);
      ABT_CHECK(
          known != kinds.end(), Config,
          "model.file: {}: the model has an input of kind '{}'; expected one tensor, parameters, "
          "buffers and constants",
          archive_.path(), printable(kind));
      const std::vector<std::string> names =
          archive_.names_of(what.at(kind + "_name").get<std::string>());
      const auto value_name = what.at("arg").at("name").get<std::string>();
      const auto tied = std::ranges::find(graph_.tensors, names.front(), &GraphTensor::name);
      if (tied != graph_.tensors.end()) {
        names_.emplace(value_name, tied->value);
      } else {
        const bool is_parameter = known->second == GraphTensor::Kind::Parameter;
        graph_.tensors.push_back(
            {names, known->second, define(value_name), what.value("persistent", is_parameter)});
      }
    }
    ABT_CHECK(
        graph_.input >= 0, Config,
        "model.file: {}: the model takes no input; expected a module whose forward() takes one "
        "tensor",
        archive_.path());
  }

  void read_output(const ordered_json& signature, const ordered_json& graph) {
    std::vector<std::string> outputs;
    for (const ordered_json& spec : signature.at("output_specs")) {
      const auto [kind, what] = tagged(spec);
      if (kind == "user_output" && what.at("arg").contains("as_tensor")) {
        outputs.push_back(what.at("arg").at("as_tensor").at("name").get<std::string>());
      } else if (kind == "user_output" && !what.at("arg").contains("as_none")) {
        outputs.emplace_back();
      }
    }
    ABT_CHECK(
        outputs.size() == 1 && !outputs[0].empty(), Config,
        "model.file: {}: the model returns {} values; expected one tensor: export a module whose "
        "forward() returns only the logits",
        archive_.path(), outputs.size());
    graph_.output = value(outputs[0]);
    graph_.output_meta = meta_of(graph, outputs[0]);
  }

  GraphMeta meta_of(const ordered_json& graph, const std::string& name) const {
    const ordered_json& meta = graph.at("tensor_values").at(name);
    GraphMeta result{exported_type(archive_.whole(meta.at("dtype"))), {}};
    for (const ordered_json& size : meta.at("sizes")) {
      const auto number = size.find("as_int");
      if (number != size.end()) {
        result.sizes.emplace_back(archive_.whole(*number));
        result.numbers *= static_cast<double>(*result.sizes.back());
      } else {
        result.sizes.emplace_back();
        result.numbers *= hint_of(size);
        const std::string expression = expression_of(size);
        const int of_batch = power_in(expression, batch_);
        const int of_length = power_in(expression, length_);
        // An expression without either symbol may still depend on the batch.
        result.batch_power += of_batch + of_length > 0 ? of_batch : 1;
        result.length_power += of_length;
      }
    }
    const auto strides = meta.find("strides");
    const std::size_t dims = result.sizes.size();
    if (strides != meta.end() && strides->size() == dims && (dims == 4 || dims == 5)) {
      const auto is_one = [&](std::size_t i) {
        return (*strides)[i].contains("as_int") && archive_.whole((*strides)[i].at("as_int")) == 1;
      };
      result.channels_last = is_one(1) && !is_one(dims - 1);
    }
    return result;
  }
  // A dynamic size in SymPy's form, such as "s77" or "64*s77"; empty for a fixed one.
  static std::string expression_of(const ordered_json& size) {
    const ordered_json::json_pointer place("/as_expr/expr_str");
    return size.contains(place) && size.at(place).is_string() ? size.at(place).get<std::string>()
                                                              : std::string();
  }
  // The value that a size had at export; 0 if the file does not say.
  double hint_of(const ordered_json& size) const {
    const ordered_json::json_pointer place("/as_expr/hint/as_int");
    return size.contains(place) ? std::max(1.0, static_cast<double>(archive_.whole(size.at(place))))
                                : 0;
  }

  void read_nodes(const ordered_json& graph, const Modes& modes) {
    for (const ordered_json& json : graph.at("nodes")) {
      archive_.check(
          std::ssize(graph_.nodes) < kMaxNodes,
          formatted("its graph has more than {} operators", kMaxNodes));
      read_node(graph, json, modes);
    }
  }

  [[noreturn]] void refuse(const ordered_json& json, const std::string& why) const {
    throw Error(
        ErrorKind::Config,
        formatted(
            "model.file: {}: operator {}{}: {}", archive_.path(),
            printable(json.at("target").get<std::string>()), place_of(json), why));
  }

  void read_node(const ordered_json& graph, const ordered_json& json, const Modes& modes) {
    GraphNode node;
    node.target = json.at("target").get<std::string>();
    node.where = place_of(json);
    node.modes = modes;
    if (node.target == "torch.ops.higher_order.wrap_with_set_grad_enabled" ||
        node.target == "torch.ops.higher_order.wrap_with_autocast") {
      read_wrapped(json, modes);
      return;
    }
    constexpr std::string_view kAten = "torch.ops.aten.";
    const auto begins = [&](std::string_view with) { return node.target.starts_with(with); };
    const bool is_aten = begins(kAten);
    // Refused before the arguments are read, because arguments may be graphs.
    constexpr std::string_view kHigher = "torch.ops.higher_order.";
    const std::string branch = begins(kHigher) ? node.target.substr(kHigher.size()) : "";
    if (branch == "cond" || branch == "while_loop" || branch == "scan") {
      refuse(
          json,
          "branches and loops that depend on tensors' values do not run here; use torch.where in "
          "place of torch.cond, and a loop of a fixed length in place of while_loop and scan");
    }
    if (!is_aten && !begins("_operator.") && !begins("math.") && !begins("torch.sym_")) {
      refuse(
          json,
          "only PyTorch's own (aten) operators run here, and this is not one of them; replace it "
          "in the model with operators that are");
    }
    std::vector<GraphArgument> given;
    for (const ordered_json& input : json.at("inputs")) {
      given.push_back(read_argument(
          input.at("name").get<std::string>(), input.at("arg"),
          [&](const std::string& name) { return value(name); }, archive_));
    }
    if (is_aten) {
      const std::string name = node.target.substr(kAten.size());
      const std::size_t dot = name.find('.');
      const std::string base = name.substr(0, dot);
      const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
      if (is_assertion(base)) {
        return;
      }
      node.op = c10::Dispatcher::singleton().findSchema(
          {"aten::" + base, overload == "default" ? "" : overload});
      if (!node.op) {
        refuse(json, "the LibTorch of this program has no such operator; export the model with an older PyTorch");
      }
      if (!is_allowed(node.op->schema())) {
        refuse(
            json, node.op->hasTag(at::Tag::nondeterministic_seeded)
                      ? kDrawsNumbers
                      : "it is not among the operators that a model may use here");
      }
      node.target = "aten::" + base;
      node.arguments = by_schema(json, node.op->schema(), given);
    } else {
      node.arguments = std::move(given);
    }
    read_outputs(graph, json, node);
    graph_.nodes.push_back(std::move(node));
  }

  std::vector<GraphArgument> by_schema(
      const ordered_json& json, const c10::FunctionSchema& schema,
      std::vector<GraphArgument>& given) const {
    std::vector<GraphArgument> arguments;
    std::size_t used = 0;
    for (const c10::Argument& wanted : schema.arguments()) {
      const auto found = std::ranges::find(given, wanted.name(), &GraphArgument::name);
      GraphArgument argument;
      if (found != given.end()) {
        argument = *found;
        ++used;
        if (!argument.is_list && argument.values.empty() && !argument.is_device) {
          argument.constant = fitted(argument.constant, wanted.type(), wanted.N());
        }
      } else {
        argument.name = wanted.name();
        if (wanted.default_value()) {
          argument.constant = *wanted.default_value();
        } else if (wanted.type()->kind() != c10::TypeKind::OptionalType) {
          refuse(json, formatted("its argument '{}' is missing", wanted.name()));
        }
      }
      if (!names_a_type(argument.constant, *wanted.real_type())) {
        refuse(
            json, formatted("its argument '{}' has no type or layout of PyTorch", wanted.name()));
      }
      arguments.push_back(std::move(argument));
    }
    if (used != given.size()) {
      refuse(json, "it has an argument that PyTorch's operator lacks");
    }
    return arguments;
  }

  void read_outputs(const ordered_json& graph, const ordered_json& json, GraphNode& node) {
    static const std::set<std::string> kKinds = {"as_tensor",         "as_tensors",  "as_sym_int",
                                                 "as_sym_float",      "as_sym_bool", "as_none",
                                                 "as_optional_tensor"};
    for (const ordered_json& output : json.at("outputs")) {
      const std::string kind = tagged(output).kind;
      if (!kKinds.contains(kind)) {
        refuse(json, formatted("its result of kind '{}' is not supported", printable(kind)));
      }
      if (kind == "as_tensors" && json.at("outputs").size() != 1) {
        refuse(json, "it returns several lists");
      }
      for (const std::string& name : value_names(output)) {
        node.outputs.push_back(name.empty() ? -1 : define(name));
        if (!name.empty() && graph.at("tensor_values").contains(name)) {
          graph_.results.emplace(node.outputs.back(), meta_of(graph, name));
        }
      }
    }
  }

  // Reads the body of `with torch.no_grad()` or `with torch.autocast(...)`.
  void read_wrapped(const ordered_json& json, Modes modes) {
    const ordered_json& inputs = json.at("inputs");
    std::size_t place = 0;
    while (place < inputs.size() && !inputs[place].at("arg").contains("as_graph")) {
      ++place;
    }
    archive_.check(place < inputs.size(), "a block of the graph is missing");
    if (place == 1) {
      modes.records_gradients = inputs[0].at("arg").at("as_bool").get<bool>();
    } else if (place == 4) {
      modes.autocasts = inputs[2].at("arg").at("as_bool").get<bool>();
    } else {
      archive_.damaged("a block of the graph has other arguments than expected");
    }
    const ordered_json& body = inputs[place].at("arg").at("as_graph").at("graph");
    std::map<std::string, ValueId> inner;
    const ordered_json& parameters = body.at("inputs");
    archive_.check(
        parameters.size() == inputs.size() - place - 1,
        "a block of the graph takes another number of values than it is given");
    const auto name_of = [](const ordered_json& argument) { return value_names(argument).at(0); };
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      inner.emplace(name_of(parameters[i]), value(name_of(inputs[place + 1 + i].at("arg"))));
    }
    std::swap(names_, inner);
    read_nodes(body, modes);
    std::vector<ValueId> results;
    for (const ordered_json& output : body.at("outputs")) {
      results.push_back(value(name_of(output)));
    }
    std::swap(names_, inner);
    std::vector<std::string> outer;
    for (const ordered_json& output : json.at("outputs")) {
      std::ranges::move(value_names(output), std::back_inserter(outer));
    }
    archive_.check(
        outer.size() == results.size(),
        "a block of the graph returns another number of values than expected");
    for (std::size_t i = 0; i < outer.size(); ++i) {
      names_[outer[i]] = results[i];
    }
  }

  const ExportArchive& archive_;
  ExportedGraph graph_;
  std::map<std::string, ValueId> names_;
  std::string batch_;   // symbol of the input's first size; empty if that is fixed
  std::string length_;  // likewise for its second size
};

}  // namespace

int power_in(const std::string& expression, const std::string& symbol) {
  const auto is_part = [&](std::size_t place) {
    return place < expression.size() &&
           (std::isalnum(static_cast<unsigned char>(expression[place])) != 0 ||
            expression[place] == '_');
  };
  int power = 0;
  for (std::size_t at = expression.find(symbol); !symbol.empty() && at != std::string::npos;
       at = expression.find(symbol, at + symbol.size())) {
    const std::size_t end = at + symbol.size();
    if ((at > 0 && is_part(at - 1)) || is_part(end)) {
      continue;  // part of another symbol
    }
    int own = 1;
    if (expression.compare(end, 2, "**") == 0) {
      std::from_chars(expression.data() + end + 2, expression.data() + expression.size(), own);
    }
    power += std::max(own, 1);
  }
  return power;
}

ExportedGraph read_graph(const ExportArchive& archive) {
  try {
    return GraphReader(archive).read();
  } catch (const nlohmann::json::exception& error) {
    archive.damaged(formatted("models/model.json: {}", error.what()));
  }
}

}  // namespace abtrain::nn
