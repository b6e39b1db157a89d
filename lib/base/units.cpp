#include "base/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace abtrain {

namespace {

// A finite number of at least 0 and the unit that follows it.
std::optional<std::pair<double, std::string>> cut(std::string_view text) {
  text = trim(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) {
    return std::nullopt;
  }
  const auto used = static_cast<std::size_t>(end - text.data());
  return std::pair(number, std::string(trim(text.substr(used))));
}

}  // namespace

std::optional<double> parse_rate(std::string_view text) {
  auto parts = cut(text);
  if (!parts) {
    return std::nullopt;
  }
  auto [number, unit] = *parts;
  if (unit.ends_with("/s") || unit.ends_with("ps")) {
    unit.resize(unit.size() - 2);
  }
  double scale = 1;
  constexpr std::array<std::pair<char, double>, 4> kPrefixes{
      {{'K', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}}};
  for (const auto& [prefix, factor] : kPrefixes) {
    if (unit.size() > 1 && std::toupper(unit.front()) == prefix) {
      scale = factor;
      unit.erase(0, 1);
      break;
    }
  }
  const bool bytes = unit == "B" || unit == "byte" || unit == "bytes";
  const bool bits = unit == "b" || unit == "bit" || unit == "bits";
  if (!(bytes || bits) || number <= 0) {
    return std::nullopt;
  }
  return number * scale * (bytes ? 8 : 1);
}

std::optional<double> parse_seconds(std::string_view text) {
  const auto parts = cut(text);
  if (!parts) {
    return std::nullopt;
  }
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{
      {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}};
  const auto* known =
      std::ranges::find(kUnits, parts->second, &decltype(kUnits)::value_type::first);
  return known == kUnits.end() ? std::nullopt : std::optional(parts->first * known->second);
}

std::string rate_text(double bits_per_second) {
  constexpr std::array<const char*, 4> kUnits{"bit", "kbit", "Mbit", "Gbit"};
  std::size_t unit = 0;
  while (bits_per_second >= 1000 && unit + 1 < kUnits.size()) {
    bits_per_second /= 1000;
    ++unit;
  }
  return formatted("{} {}/s", bits_per_second, kUnits[unit]);
}

std::string short_time_text(double seconds) {
  if (seconds >= 1 || seconds == 0) {
    return formatted("{} s", seconds);
  }
  return seconds >= 1e-3 ? formatted("{} ms", seconds * 1e3) : formatted("{} us", seconds * 1e6);
}

}  // namespace abtrain
