#include "base/scalars.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace abtrain {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// YAML 1.1 reads 010 as 8, and YAML 1.2 reads it as 10: such numbers are
// rejected.
bool has_leading_zero(const std::string& digits, std::string& why) {
  const bool has = digits.size() > 1 && digits[0] == '0' && is_digit(digits[1]);
  if (has) {
    why = "write it without the leading zero";
  }
  return has;
}

std::string unsigned_part(const std::string& text) {
  const bool sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  return text.substr(sign ? 1 : 0);
}

}  // namespace

template <class Integer>
bool parse_integer(const std::string& text, Integer& out, std::string& why) {
  const std::string digits = unsigned_part(text);
  return !digits.empty() && std::ranges::all_of(digits, is_digit) &&
         !has_leading_zero(digits, why) && read_number(text[0] == '+' ? digits : text, out);
}

template bool parse_integer(const std::string&, std::int64_t&, std::string&);
template bool parse_integer(const std::string&, std::uint64_t&, std::string&);

bool parse_number(const std::string& text, double& out, std::string& why) {
  const std::string digits = unsigned_part(text);
  if (digits.empty() || digits[0] == '-' || digits[0] == '+' || has_leading_zero(digits, why)) {
    return false;
  }
  const std::string plain = text[0] == '+' ? digits : text;
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  const bool whole = end == plain.data() + plain.size();
  if (whole && error == std::errc::result_out_of_range) {
    why = "beyond what a double can hold";
    return false;
  }
  if (digits == ".inf" || digits == ".nan" || digits == ".NaN" || digits == ".Inf" ||
      (whole && !std::isfinite(value))) {
    why = "not a finite number";
    return false;
  }
  if (error != std::errc() || !whole) {
    return false;
  }
  out = value;
  return true;
}

bool parse_duration(const std::string& text, Duration& out, std::string& why) {
  // The unit follows a space, which may be missing before a percent sign.
  const std::size_t end = text.find_first_of(" %");
  const std::size_t letters = text.find_first_not_of("0123456789.");
  if (letters > 0 && letters < end &&
      (text[letters] == 's' || text.substr(letters).starts_with("ep"))) {
    why = formatted(
        "put a space before the unit: {} {}", text.substr(0, letters), text.substr(letters));
    return false;
  }
  const std::string unit(end == std::string::npos ? "steps" : trim(text.substr(end)));
  const std::string count = text.substr(0, end);
  if (unit == "step" || unit == "steps") {
    std::int64_t steps = 0;
    if (!parse_integer(count, steps, why)) {
      double ignored = 0;
      std::string other;
      if (why.empty() && parse_number(count, ignored, other)) {
        why = "steps are whole numbers";
      }
      return false;
    }
    out = Duration::steps(static_cast<double>(steps));
    return true;
  }
  const bool percent = unit == "%";
  if (!percent && unit != "epoch" && unit != "epochs") {
    why = "the unit must be steps, epochs or %";
    return false;
  }
  double value = 0;
  if (!parse_number(count, value, why)) {
    return false;
  }
  out = percent ? Duration::percent(value) : Duration::epochs(value);
  return true;
}

bool parse_bytes(const std::string& text, std::uint64_t& out, std::string& why) {
  static constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {
      {{"", 1},
       {"B", 1},
       {"kB", 1e3},
       {"MB", 1e6},
       {"GB", 1e9},
       {"KiB", 1024.0},
       {"MiB", 1024.0 * 1024},
       {"GiB", 1024.0 * 1024 * 1024}}};
  const std::size_t end = text.find_last_of("0123456789.") + 1;
  const std::string_view unit = trim(std::string_view(text).substr(end));
  const auto* known = std::ranges::find_if(
      kUnits, [&](const auto& entry) { return lower_case(entry.first) == lower_case(unit); });
  if (known == kUnits.end()) {
    why = formatted("unknown unit '{}', use B, kB, MB, GB, KiB, MiB or GiB", unit);
    return false;
  }
  double number = 0;
  if (!parse_number(text.substr(0, end), number, why)) {
    return false;
  }
  const double bytes = std::floor(number * known->second);
  if (bytes < 1 || bytes > 1e18) {
    return false;
  }
  out = static_cast<std::uint64_t>(bytes);
  return true;
}

std::string print_number(double value) {
  constexpr double kLargestWhole = 1e9;
  if (value == std::trunc(value) && std::abs(value) < kLargestWhole) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  // YAML 1.1 (PyYAML) reads 1e-05 as a string and 1.0e-05 as a number.
  const std::size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos) {
    text.insert(exponent, ".0");
  }
  return text;
}

std::string print_duration(const Duration& value) {
  switch (value.unit) {
    case Duration::Unit::Percent:
      return print_number(value.value) + " %";
    case Duration::Unit::Epochs:
      return print_number(value.value) + (value.value == 1 ? " epoch" : " epochs");
    case Duration::Unit::Steps:
      break;
  }
  return formatted("{}{}", std::llround(value.value), value.value == 1 ? " step" : " steps");
}

std::string print_text(const std::string& text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool plain =
      !text.empty() && (is_letter(text[0]) || text[0] == '/') &&
      std::all_of(text.begin(), text.end(), [&](char c) {
        return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '/';
      });
  // Words that some YAML readers do not read as strings.
  const std::string lower = lower_case(text);
  const std::array<const char*, 9> words = {"true", "false", "yes", "no", "on",
                                            "off",  "null",  "y",   "n"};
  if (plain && std::find(words.begin(), words.end(), lower) == words.end()) {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += formatted("\\x{:02X}", c);
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace abtrain
