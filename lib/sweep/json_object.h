// A JSON object of a file, whose complaints name file, line and key:
// LocatedError of the kind DamagedData.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace abtrain::sweep {

// Throws "path:line: error: what".
[[noreturn]] void
damaged(const std::string& path, std::ptrdiff_t line, const std::string& what);

class JsonObject {
 public:
  // `line`: where in the file the text begins.
  JsonObject(std::string path, std::ptrdiff_t line, std::string_view text);

  // `pointer` as "/traffic/bytes_per_worker"; null where there is no such key.
  const nlohmann::json* find(const char* pointer) const;
  // None where there is no number.
  std::optional<double> maybe(const char* pointer) const;
  double number(const char* pointer) const;
  std::string text(const char* pointer) const;
  const nlohmann::json& list(const char* pointer) const;
  [[noreturn]] void complain(const std::string& pointer, const char* wanted)
      const;

 private:
  std::string path_;
  std::ptrdiff_t line_;
  nlohmann::json json_;
};

}  // namespace abtrain::sweep
