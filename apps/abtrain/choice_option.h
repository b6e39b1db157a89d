// Options of the command line that take one of a few words, or a number within a range. The help
// shows them as `a|b` and `INT in [1, 9]`.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/mapped.h"
#include "base/options.h"
#include "base/scalars.h"
#include "base/text.h"

namespace abtrain::app {

inline CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words) {
  option->check([words](const std::string& text) {
    return std::ranges::count(words, text) > 0
               ? ""
               : formatted("expected one of {}, got '{}'", join(words, ", "), text);
  });
  return option->type_name(join(words, "|"));
}

// T: std::int64_t or double. Without `high`, only the type limits the value from above.
template <class T>
CLI::Option* in_range(CLI::Option* option, T low, T high = std::numeric_limits<T>::max()) {
  constexpr bool kWhole = std::is_integral_v<T>;
  const bool is_open = high == std::numeric_limits<T>::max();
  const std::string wanted = formatted(
      "{} {}", kWhole ? "an integer" : "a number",
      is_open ? formatted("of at least {}", low) : formatted("from {} to {}", low, high));
  option->check([low, high, wanted](const std::string& text) {
    T value{};
    std::string ignored;
    bool is_number = false;
    if constexpr (kWhole) {
      is_number = parse_integer(text, value, ignored);
    } else {
      is_number = parse_number(text, value, ignored);
    }
    return is_number && value >= low && value <= high
               ? ""
               : formatted("expected {}, got '{}'", wanted, text);
  });
  return option->type_name(formatted(
      "{}{}", kWhole ? "INT" : "FLOAT",
      is_open ? formatted(" >= {}", low) : formatted(" in [{}, {}]", low, high)));
}

// `member` (an enumeration, or an optional one) must outlive the parser.
template <class E, class T>
CLI::Option* add_choice(
    CLI::App& command, const char* option, T& member, const Names<E>& names, const char* help) {
  const auto set = [&member, names](const std::string& word) {  // one of the words
    member = std::ranges::find(names, word, &Names<E>::value_type::first)->second;
  };
  return one_of(
      command.add_option_function<std::string>(option, set, help),
      mapped(names, &Names<E>::value_type::first));
}

enum class Format { Table, Csv, Json, Markdown, Html };

// Adds --format, which takes the names of `formats`, and --json, short for --format json. `member`
// (a Format, or an optional one) must outlive the parser.
template <class T>
void add_format(
    CLI::App& command, T& member, const std::vector<Format>& formats, const char* help) {
  Names<Format> names = {
      {"table", Format::Table},
      {"csv", Format::Csv},
      {"json", Format::Json},
      {"markdown", Format::Markdown},
      {"html", Format::Html}};
  std::erase_if(
      names, [&](const auto& name) { return std::ranges::count(formats, name.second) == 0; });
  add_choice<Format>(command, "--format", member, names, help);
  command.add_flag_function(
      "--json", [&member](std::int64_t) { member = Format::Json; }, "the same as --format json");
}

// Adds an option that may be given several times, with one value each.
inline void add_repeated(
    CLI::App& command, const char* option, std::vector<std::string>& values, const char* type,
    const char* help) {
  command.add_option(option, values, help)
      ->type_name(type)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace abtrain::app
