#include "base/env.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/scalars.h"
#include "base/text.h"

namespace abtrain {

std::optional<std::string> env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    return std::nullopt;
  }
  return value;
}

namespace {

std::optional<std::int64_t> integer_of(const char* name, const std::optional<std::string>& text) {
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

}  // namespace

std::optional<std::int64_t> env_integer(const char* name) {
  return integer_of(name, env(name));
}

std::optional<std::int64_t> first_env_integer(const char* name) {
  const auto text = env(name);
  return integer_of(
      name, text ? std::optional(std::string(trim(split_text(*text, ',')[0]))) : text);
}

bool expand_path(const std::string& path, std::string& out, std::string& why) {
  const auto add = [&](const std::string& name) {
    const auto value = env(name.c_str());
    why = value ? "" : formatted("the environment variable {} is not set", name);
    out += value.value_or("");
    return value.has_value();
  };
  const auto in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  out.clear();
  std::size_t at = 0;
  if (path == "~" || path.starts_with("~/")) {
    if (!add("HOME")) {
      return false;
    }
    at = 1;
  }
  while (at < path.size()) {
    const bool braces = path.compare(at, 2, "${") == 0;
    const std::size_t begin = at + (braces ? 2 : 1);
    const std::size_t end = static_cast<std::size_t>(
        std::find_if_not(
            path.begin() + static_cast<std::ptrdiff_t>(std::min(begin, path.size())), path.end(),
            in_name) -
        path.begin());
    const bool names = path[at] == '$' && end > begin &&
                       std::isdigit(static_cast<unsigned char>(path[begin])) == 0 &&
                       (!braces || (end < path.size() && path[end] == '}'));
    if (!names) {
      out += path[at++];
    } else if (!add(path.substr(begin, end - begin))) {
      return false;
    } else {
      at = end + (braces ? 1 : 0);
    }
  }
  return true;
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
