// Wrong configurations as cases: a file, `--set`s, and all that must be said.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "config/config.h"
#include "error_of.h"
#include "temp_folder.h"

namespace abtrain::testing {

using Texts = std::vector<std::string>;

struct WrongCase {
  const char* name;
  std::string yaml;  // of the file "c.yaml"; empty: no file
  Texts sets;
  // First lines, in order; the file's folder left out. "..." stands for any
  // text.
  Texts problems;
};

inline void PrintTo(const WrongCase& c, std::ostream* out) {
  *out << c.name;
}

// The first lines of all problems; {} where nothing was thrown.
inline Texts problems_of(const WrongCase& c, std::string* whole = nullptr) {
  const TempFolder folder;
  const std::string path = c.yaml.empty() ? "" : folder.add("c.yaml", c.yaml);
  // Four workers, so that the default method has its groups.
  Texts sets = c.sets;
  if (c.yaml.find("workers") == std::string::npos &&
      join(sets, " ").find("workers") == std::string::npos) {
    sets.insert(sets.begin(), "workers=4");
  }
  const auto [code, message] = error_of([&] { config::read_config(path, sets); });
  EXPECT_TRUE(code == 0 || code == 78) << code;
  Texts out;
  for (std::string line : split_text(message, '\n')) {
    line = replaced(line, folder.path() + "/", "");
    if (line.find(": error: ") != std::string::npos) {
      out.push_back(line);
    }
  }
  if (whole != nullptr) {
    *whole = message;
  }
  return out;
}

inline bool matches(std::string_view line, std::string_view pattern) {
  constexpr std::string_view kAny = "...";
  std::size_t gap = pattern.find(kAny);
  if (gap == std::string_view::npos) {
    return line == pattern;
  }
  if (!line.starts_with(pattern.substr(0, gap))) {
    return false;
  }
  line.remove_prefix(gap);
  pattern.remove_prefix(gap + kAny.size());
  gap = pattern.find(kAny);
  if (gap == std::string_view::npos) {
    return line.ends_with(pattern);
  }
  const std::size_t at = line.find(pattern.substr(0, gap));
  return at != std::string_view::npos && matches(line.substr(at), pattern);
}

inline void expect_problems(const WrongCase& c) {
  const Texts found = problems_of(c);
  EXPECT_TRUE(std::ranges::equal(found, c.problems, matches))
      << "expected\n"
      << join(c.problems, "\n") << "\nfound\n"
      << join(found, "\n");
}

inline std::string case_name(const ::testing::TestParamInfo<WrongCase>& info) {
  return info.param.name;
}

}  // namespace abtrain::testing
