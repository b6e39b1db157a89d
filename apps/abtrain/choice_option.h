// An option of the command line whose value is one of a few words.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"

namespace abtrain::app {

// `member` (an enumeration, or an optional one) must outlive the parser.
template <class E, class T>
CLI::Option* add_choice(
    CLI::App& command,
    const char* option,
    T& member,
    const Names<E>& names,
    const char* help) {
  std::vector<std::string> words;
  for (const auto& [name, value] : names) {
    words.push_back(name);
  }
  const auto set = [&member, names](const std::string& word) {
    for (const auto& [name, value] : names) {
      if (name == word) {
        member = value;
      }
    }
  };
  return command.add_option_function<std::string>(option, set, help)
      ->check(CLI::IsMember(words));
}

// Adds --json, short for --format json. `member` must outlive the parser.
template <class T, class E>
void add_json(CLI::App& command, T& member, E json) {
  command.add_flag_function(
      "--json",
      [&member, json](std::int64_t) { member = json; },
      "the same as --format json");
}

}  // namespace abtrain::app
