#include "base/env.h"

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/scalars.h"

namespace abtrain {

std::optional<std::string> env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> env_integer(const char* name) {
  const auto text = env(name);
  if (!text) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  std::string why;
  ABT_CHECK(
      parse_integer(*text, value, why), Usage,
      "environment variable {}: expected an integer, got '{}'", name, *text);
  return value;
}

std::string at_home(const std::string& path) {
  const auto home = env("HOME");
  return path.starts_with("~/") && home ? *home + path.substr(1) : path;
}

std::string cache_folder() {
  if (const auto cache = env("XDG_CACHE_HOME")) {
    return *cache + "/abtrain";
  }
  const auto home = env("HOME");
  return home ? *home + "/.cache/abtrain" : "";
}

std::string program_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : path.string();
}

}  // namespace abtrain
