// The one reader of JSON that comes from a file. Whatever the bytes are, it
// ends with a value or with Error(DamagedData): size, depth and the number of
// values are bounded, and a key given twice or a number that no double holds is
// damage.
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

// What is wrong with a text, and at which of its bytes.
struct JsonProblem {
  std::string what;
  std::size_t byte = 0;
};

// A discarded value where there is a problem. Takes linear time, as the file's
// largest objects have one key per tensor.
nlohmann::ordered_json parse_json(std::string_view text, JsonProblem& problem);

// Whether a value has the type and range of `out`, which it is then stored in:
// a whole number that fits, a finite number, a flag, a text, a list of numbers.
bool read_json(const nlohmann::ordered_json& value, std::int64_t& out);
bool read_json(const nlohmann::ordered_json& value, double& out);
bool read_json(const nlohmann::ordered_json& value, bool& out);
bool read_json(const nlohmann::ordered_json& value, std::string& out);
bool read_json(
    const nlohmann::ordered_json& value,
    std::vector<std::int64_t>& out);
bool read_json(const nlohmann::ordered_json& value, std::vector<double>& out);
bool read_json(
    const nlohmann::ordered_json& value,
    nlohmann::ordered_json& out);

// A value as a message shows it: short, in ASCII without control characters.
std::string shown(const nlohmann::ordered_json& value);

// Throws LocatedError(DamagedData), "path:line: error: what".
[[noreturn]] void
damaged(const std::string& path, std::ptrdiff_t line, const std::string& what);

// A JSON object of a file, whose complaints name file, line and key.
class JsonObject {
 public:
  // `line`: where in the file the text begins.
  JsonObject(std::string path, std::ptrdiff_t line, std::string_view text);
  // A file that is one object. Throws MissingInput too.
  static JsonObject of_file(const std::string& path);

  const nlohmann::ordered_json& all() const {
    return json_;
  }
  // `pointer` as "/traffic/bytes_per_worker"; null where there is no such key.
  const nlohmann::ordered_json* find(const char* pointer) const;
  // None where there is no number.
  std::optional<double> maybe(const char* pointer) const;
  double number(const char* pointer) const;
  // From `low` to `high`.
  std::int64_t integer(
      const char* pointer,
      std::int64_t low,
      std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::string text(const char* pointer) const;
  const nlohmann::ordered_json& list(const char* pointer) const;
  const nlohmann::ordered_json& object(const char* pointer) const;
  [[noreturn]] void complain(
      const std::string& pointer,
      const std::string& wanted) const;

 private:
  std::string path_;
  std::ptrdiff_t line_;
  nlohmann::ordered_json json_;
};

}  // namespace abtrain
