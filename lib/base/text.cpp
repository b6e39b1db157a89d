// LibTorch's wheel has {fmt}'s headers, but not its library: this file compiles
// the functions of {fmt} for the whole program.
#define FMT_HEADER_ONLY
#include "base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>
#include <type_traits>

namespace abtrain {

namespace {

// Formats as {fmt} does, except for floating-point numbers without a specification: a whole number
// keeps all of its digits.
struct Handler : fmt::detail::format_handler<char> {
  void on_replacement_field(int id, const char* /*begin*/) {
    ctx.arg(id).visit([&](const auto& part) {
      if constexpr (std::is_floating_point_v<std::decay_t<decltype(part)>>) {
        constexpr double kLargestWhole = 1e15;
        if (part == std::trunc(part) && std::abs(part) < kLargestWhole) {
          fmt::format_to(ctx.out(), "{:.0f}", part);
        } else {
          fmt::format_to(ctx.out(), "{:g}", part);
        }
      } else {
        fmt::detail::default_arg_formatter<char>{ctx.out()}(part);
      }
    });
  }
};

}  // namespace

std::string fill_text(fmt::string_view text, fmt::format_args parts) {
  fmt::memory_buffer out;
  Handler handler{{fmt::parse_context<char>(text), {fmt::appender(out), parts}}};
  fmt::detail::parse_format_string(text, handler);
  return fmt::to_string(out);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at; (at = text.find(from)) != std::string_view::npos;) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

std::string in_quotes(const std::string& text) {
  return "\"" + replaced(replaced(text, "\\", "\\\\"), "\"", "\\\"") + "\"";
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string listed(const std::vector<std::string>& parts) {
  if (parts.size() < 2) {
    return join(parts, "");
  }
  return join({parts.begin(), parts.end() - 1}, ", ") + " and " + parts.back();
}

std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string lines;
  std::size_t used = 0;
  for (const std::string& word : split_text(text, ' ')) {
    const bool breaks = used != 0 && used + 1 + word.size() > columns;
    lines += used == 0 ? "" : breaks ? "\n" : " ";
    used = breaks || used == 0 ? word.size() : used + 1 + word.size();
    lines += word;
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const char* blank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

namespace {

// Whether a terminal acts on this character instead of showing it.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) {
    return first < 0x20 || first == 0x7F;
  }
  const auto is_between = [&](std::string_view low, std::string_view high) {
    return character >= low && character <= high;
  };
  return is_between("\u0080", "\u009f") || is_between("\u200e", "\u200f") ||
         is_between("\u2028", "\u202e") || is_between("\u2066", "\u2069") || character == "\u061c";
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) {
    return 0;
  }
  if (std::ranges::any_of(text.substr(1, length - 1), begins_character)) {
    return 0;
  }
  const bool is_bad = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ||
                      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90);
  return is_bad ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, std::string_view keep) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(character.size());
    if (length > 0 && (!is_control(character) || keep.find(character) != std::string_view::npos)) {
      out += character;
    } else if (character == "\n" || character == "\t") {
      out += character == "\n" ? "\\n" : "\\t";
    } else {
      for (const char c : character) {
        out += formatted("\\x{:02x}", c & 0xFF);
      }
    }
  }
  return out;
}

bool glob_match(const std::string& pattern, const std::string& name) {
  return pattern == name || ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

namespace {

// Counts the characters to insert, delete or replace, and the neighbors to swap.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::move(above);
    above = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  // Allows one change per three characters: at least one, at most four.
  std::size_t best_distance =
      name.size() < 3 ? 0 : std::clamp<std::size_t>(name.size() / 3, 1, 4) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = candidate.starts_with(name) ? 1 : edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;  // digit
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > first; at -= 3) {
    text.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return text;
}

std::string human_bytes(double bytes) {
  static const char* const kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 5) {
    bytes /= 1000;
    ++unit;
  }
  return formatted("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 10) {
    return formatted("{:.1f} s", seconds);
  }
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 120) {
    return formatted("{} s", whole);
  }
  if (whole < 7200) {
    return formatted("{} min {} s", whole / 60, whole % 60);
  }
  return formatted("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace abtrain
