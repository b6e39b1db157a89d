// The program's only JSON parser. It reports every fault, whatever the bytes: parse_json() by a
// JsonProblem, JsonObject by Error(DamagedData). The size, the depth and the number of values are
// bounded; a duplicate key or a number beyond the range of a double is a fault.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace abtrain {

struct JsonProblem {
  std::string what;
  std::size_t byte = 0;
};

// Returns a discarded value, and sets `problem`, if the text is not valid.
// Takes linear time, even for objects with one key per tensor.
nlohmann::ordered_json parse_json(std::string_view text, JsonProblem& problem);

// Stores the value in `out` and returns true if it has the type and range of
// `out`: an integer that fits, a finite number, a Boolean, a string, a list of
// numbers or strings, or any value.
bool read_json(const nlohmann::ordered_json& value, std::int64_t& out);
bool read_json(const nlohmann::ordered_json& value, double& out);
bool read_json(const nlohmann::ordered_json& value, bool& out);
bool read_json(const nlohmann::ordered_json& value, std::string& out);
bool read_json(const nlohmann::ordered_json& value, nlohmann::ordered_json& out);
template <class T>
bool read_json(const nlohmann::ordered_json& value, std::vector<T>& out) {
  if (!value.is_array()) {
    return false;
  }
  std::vector<T> items(value.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!read_json(value[i], items[i])) {
      return false;
    }
  }
  out = std::move(items);
  return true;
}

// The same for the value at `key` of an object. Also false if there is no such key or `object` is
// not an object.
bool read_json(const nlohmann::ordered_json& object, const char* key, auto& out) {
  const auto found = object.find(key);
  return found != object.end() && read_json(*found, out);
}
// The value at `key`, or T() if read_json() would return false.
template <class T>
T value_in(const nlohmann::ordered_json& object, const char* key) {
  T value{};
  read_json(object, key, value);
  return value;
}

// The value as text for a message: shortened, in ASCII, without control characters.
std::string shown(const nlohmann::ordered_json& value);

// a / b, or null if b is 0.
inline nlohmann::ordered_json ratio_or_null(double a, double b) {
  return b > 0 ? nlohmann::ordered_json(a / b) : nlohmann::ordered_json();
}

// Throws LocatedError(DamagedData), "path:line: error: what".
[[noreturn]] void damaged(const std::string& path, std::ptrdiff_t line, const std::string& what);

// A JSON object in a file. Its errors name the file, the line and the key.
class JsonObject {
 public:
  // `line`: the line of the file on which the text begins.
  JsonObject(std::string path, std::ptrdiff_t line, std::string_view text);
  // Reads a file that consists of one object. Also throws Error(MissingInput).
  static JsonObject of_file(const std::string& path);

  const nlohmann::ordered_json& all() const {
    return json_;
  }
  // `pointer` is a JSON pointer such as "/traffic/bytes_per_worker". Returns
  // null if there is no such key.
  const nlohmann::ordered_json* find(const char* pointer) const;
  // Empty if there is no number at `pointer`.
  std::optional<double> maybe(const char* pointer) const;
  double number(const char* pointer) const;
  // The value must be in low .. high, inclusive.
  std::int64_t integer(
      const char* pointer, std::int64_t low,
      std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::string text(const char* pointer) const;
  const nlohmann::ordered_json& list(const char* pointer) const;
  const nlohmann::ordered_json& object(const char* pointer) const;
  // The value of a key of `part`, which lies within the value at `pointer`. If the key is missing
  // or its value is not a T, the error says that `wanted` was expected at `pointer`.
  template <class T>
  T member(
      const nlohmann::ordered_json& part, const char* key, const char* pointer,
      const char* wanted) const {
    T value{};
    if (!read_json(part, key, value)) {
      complain(pointer, wanted);
    }
    return value;
  }
  [[noreturn]] void complain(const std::string& pointer, const std::string& wanted) const;

 private:
  const nlohmann::ordered_json& typed(
      const char* pointer, nlohmann::ordered_json::value_t type, const char* wanted) const;

  std::string path_;
  std::ptrdiff_t line_;
  nlohmann::ordered_json json_;
};

}  // namespace abtrain
