#include "nn/exported/argument.h"

#include <ATen/ops/scalar_tensor.h>

#include <limits>
#include <set>

#include "base/mapped.h"
#include "base/text.h"

namespace abtrain::nn {

namespace {

using nlohmann::ordered_json;

double number_of(const ordered_json& value) {
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return text == "Infinity"    ? kInfinity
           : text == "-Infinity" ? -kInfinity
                                 : std::numeric_limits<double>::quiet_NaN();
  }
  return value.get<double>();
}

// Reads a number of kind as_float, as_bool or as_complex; any other kind is an integer.
c10::IValue scalar_of(
    const std::string& kind, const ordered_json& what, const ExportArchive& archive) {
  if (kind == "as_float") {
    return number_of(what);
  }
  if (kind == "as_complex") {
    return c10::complex<double>(number_of(what.at("real")), number_of(what.at("imag")));
  }
  return kind == "as_bool" ? c10::IValue(what.get<bool>()) : c10::IValue(archive.whole(what));
}

// Reads an argument without its name.
GraphArgument read_value(
    const Tagged& given, const ValueByName& value, const ExportArchive& archive) {
  static const std::set<std::string> kLists = {
      "as_tensors", "as_optional_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools"};
  const auto& [kind, what] = given;
  GraphArgument a;
  if (kLists.contains(kind)) {
    a.is_list = true;
    for (const ordered_json& item : what) {
      const GraphArgument one = read_value({kind.substr(0, kind.size() - 1), item}, value, archive);
      a.values.push_back(one.value().value_or(-1));
      a.items.push_back(one.constant);
    }
  } else if (kind == "as_none") {
    // The constant stays empty.
  } else if (kind == "as_tensor") {
    a.values = {value(what.at("name").get<std::string>())};
  } else if (kind == "as_optional_tensor") {
    if (what.contains("as_tensor")) {
      a = read_value({"as_tensor", what.at("as_tensor")}, value, archive);
    }
  } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    const auto [form, content] = tagged(what);
    if (form == "as_name") {
      a.values = {value(content.get<std::string>())};
    } else {
      a.constant = scalar_of(form, content, archive);
    }
  } else if (kind == "as_int" || kind == "as_float" || kind == "as_bool" || kind == "as_complex") {
    a.constant = scalar_of(kind, what, archive);
  } else if (kind == "as_string") {
    a.constant = what.get<std::string>();
  } else if (kind == "as_ints") {
    a.constant = mapped(what, [&](const ordered_json& item) { return archive.whole(item); });
  } else if (kind == "as_bools") {
    a.constant = what.get<std::vector<bool>>();
  } else if (kind == "as_floats") {
    a.constant = mapped(what, number_of);
  } else if (kind == "as_scalar_type") {
    a.constant = static_cast<std::int64_t>(exported_type(archive.whole(what)));
  } else if (kind == "as_memory_format") {
    constexpr at::MemoryFormat kFormats[] = {
        at::MemoryFormat::Contiguous, at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast,
        at::MemoryFormat::ChannelsLast3d, at::MemoryFormat::Preserve};
    const std::int64_t format = archive.whole(what);
    archive.check(
        format >= 0 && format < std::ssize(kFormats), formatted("a memory format {}", format));
    a.constant = static_cast<std::int64_t>(kFormats[format]);
  } else if (kind == "as_layout") {
    a.constant = static_cast<std::int64_t>(at::kStrided);
  } else if (kind == "as_device") {
    a.is_device = true;
  } else {
    archive.damaged(formatted("an argument of kind '{}'", printable(kind)));
  }
  return a;
}
}  // namespace

Tagged tagged(const ordered_json& json) {
  const auto& members = json.get_ref<const ordered_json::object_t&>();
  return members.empty() ? Tagged{"", json}
                         : Tagged{members.begin()->first, members.begin()->second};
}

c10::IValue tensor_or_none(const c10::IValue& value) {
  if (!value.isScalar()) {
    return value;
  }
  const at::Tensor tensor = at::scalar_tensor(
      value.toScalar(), at::TensorOptions(
                            value.isDouble()          ? at::kDouble
                            : value.isComplexDouble() ? at::kComplexDouble
                            : value.isBool()          ? at::kBool
                                                      : at::kLong));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);  // promotes types as a number does
  return tensor;
}

c10::IValue fitted(const c10::IValue& value, const c10::TypePtr& wanted, std::optional<int> count) {
  if (const auto optional = wanted->cast<c10::OptionalType>()) {
    return value.isNone() ? value : fitted(value, optional->getElementType(), count);
  }
  if (wanted->kind() == c10::TypeKind::TensorType) {
    return tensor_or_none(value);
  }
  if (wanted->kind() == c10::TypeKind::FloatType && value.isInt()) {
    return static_cast<double>(value.toInt());
  }
  if (const auto list = wanted->cast<c10::ListType>()) {
    const c10::IValue item = fitted(value, list->getElementType(), {});
    const auto copies = static_cast<std::size_t>(count.value_or(1));
    if (item.isInt()) {
      return c10::List<std::int64_t>(std::vector<std::int64_t>(copies, item.toInt()));
    }
    if (item.isDouble()) {
      return c10::List<double>(std::vector<double>(copies, item.toDouble()));
    }
    if (value.isIntList() && list->getElementType()->kind() == c10::TypeKind::FloatType) {
      const std::vector<std::int64_t> whole = value.toIntVector();
      return std::vector<double>(whole.begin(), whole.end());
    }
  }
  return value;
}

GraphArgument read_argument(
    const std::string& name, const ordered_json& json, const ValueByName& value,
    const ExportArchive& archive) {
  GraphArgument a = read_value(tagged(json), value, archive);
  a.name = name;
  return a;
}

}  // namespace abtrain::nn
