#include "sweep/json_object.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace abtrain::sweep {

using nlohmann::json;

void damaged(
    const std::string& path,
    std::ptrdiff_t line,
    const std::string& what) {
  throw LocatedError(
      ErrorKind::DamagedData, str(path, ":", line, ": error: ", what));
}

JsonObject::JsonObject(
    std::string path,
    std::ptrdiff_t line,
    std::string_view text)
    : path_(std::move(path)), line_(line) {
  try {
    json_ = json::parse(text);
  } catch (const json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(
                                        std::min(error.byte, text.size()));
    damaged(
        path_,
        line_ + std::count(text.begin(), end, '\n'),
        "expected a JSON object, this is damaged or cut off");
  }
  if (!json_.is_object()) {
    damaged(path_, line_, "expected a JSON object");
  }
}

const json* JsonObject::find(const char* pointer) const {
  const json::json_pointer place(pointer);
  return json_.contains(place) ? &json_.at(place) : nullptr;
}

std::optional<double> JsonObject::maybe(const char* pointer) const {
  const json* value = find(pointer);
  return value != nullptr && value->is_number()
             ? std::optional(value->get<double>())
             : std::nullopt;
}

double JsonObject::number(const char* pointer) const {
  const std::optional<double> value = maybe(pointer);
  if (!value) {
    complain(pointer, "a number");
  }
  return *value;
}

std::string JsonObject::text(const char* pointer) const {
  const json* value = find(pointer);
  if (value == nullptr || !value->is_string()) {
    complain(pointer, "a text");
  }
  return value->get<std::string>();
}

const json& JsonObject::list(const char* pointer) const {
  const json* value = find(pointer);
  if (value == nullptr || !value->is_array()) {
    complain(pointer, "a list");
  }
  return *value;
}

void JsonObject::complain(const std::string& pointer, const char* wanted)
    const {
  std::string key = pointer.substr(1);
  std::ranges::replace(key, '/', '.');
  const json* value = find(pointer.c_str());
  damaged(
      path_,
      line_,
      str(key,
          ": expected ",
          wanted,
          ", got ",
          value == nullptr ? "nothing" : value->dump()));
}

}  // namespace abtrain::sweep
