#include "report/front.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/mapped.h"

namespace abtrain::report {

namespace {

KeyValues without_length(KeyValues keys) {
  std::erase_if(keys, [](const auto& key) {
    return key.first == "train.steps" || key.first == "train.epochs" ||
           key.first == "train.seconds";
  });
  return keys;
}

bool beats(const FrontPoint& a, const FrontPoint& b) {
  return a.quality >= b.quality && a.cost <= b.cost && (a.quality > b.quality || a.cost < b.cost);
}

// The common beginning of both: "ab" for "ab_1200" and "ab_1400", "r4" for "r4_200" and "r4". A
// number that differs is dropped as a whole.
std::string common_beginning(const std::string& a, const std::string& b) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kSeparators = " _-.,=";
  if (a == b) {
    return a;
  }
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto is_digit = [&](auto at, const std::string& text) {
    return at != text.end() && kDigits.find(*at) != std::string_view::npos;
  };
  std::string name(a.begin(), in_a);
  if (is_digit(in_a, a) || is_digit(in_b, b)) {
    name.resize(name.find_last_not_of(kDigits) + 1);
  }
  name.resize(name.find_last_not_of(kSeparators) + 1);
  return name;
}

void name_lines(std::vector<FrontLine>& lines, const std::vector<Setting>& settings) {
  for (FrontLine& line : lines) {
    line.name = settings[line.settings.front()].name;
    for (const std::size_t i : line.settings) {
      line.name = common_beginning(line.name, settings[i].name);
    }
  }
  const std::vector<FrontLine> named = lines;
  for (FrontLine& line : lines) {
    if (line.name.empty() || std::ranges::count(named, line.name, &FrontLine::name) > 1) {
      line.name = settings[line.settings.front()].name;
      line.name += line.settings.size() > 1 ? ", ..." : "";
    }
  }
}

}  // namespace

std::vector<Column> front_columns(std::optional<double> target) {
  std::vector<Column> columns = choose_columns(
      std::string("accuracy,bits_per_byte,r2,") + kFrontCosts +
          (target ? ",seconds_to_target" : ""),
      target);
  for (auto column = columns.begin() + 3; column != columns.end(); ++column) {
    column->best = column->is_median ? Best::None : Best::Front;
  }
  return columns;
}

std::vector<std::optional<FrontPoint>> front_points(
    const Column& cost, const std::vector<Setting>& settings) {
  return mapped(settings, [&](const Setting& setting) {
    const auto spent = cost.figure(setting).value;
    return std::isfinite(quality_of(setting)) && spent
               ? std::optional(FrontPoint{quality_of(setting), *spent})
               : std::nullopt;
  });
}

std::vector<bool> on_front(
    const std::vector<std::optional<FrontPoint>>& points,
    const std::vector<std::vector<std::size_t>>& groups) {
  std::vector<bool> there(points.size());
  for (const auto& members : groups) {
    for (const std::size_t i : members) {
      there[i] = points[i] && std::ranges::none_of(members, [&](std::size_t other) {
                   return points[other] && beats(*points[other], *points[i]);
                 });
    }
  }
  return there;
}

std::vector<FrontLine> front_lines(const std::vector<Setting>& settings) {
  std::vector<FrontLine> lines;
  std::vector<KeyValues> keys;  // of each setting, without its length
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const KeyValues& own = settings[i].runs.front().keys;
    keys.push_back(without_length(own));
    // Settings with equal keys differ in their names alone, so they are not lengths of one
    // configuration.
    const auto line = std::ranges::find_if(lines, [&](const FrontLine& l) {
      return keys[l.settings.front()] == keys[i] &&
             std::ranges::none_of(
                 l.settings, [&](std::size_t j) { return settings[j].runs.front().keys == own; });
    });
    if (line != lines.end()) {
      line->settings.push_back(i);
    } else {
      lines.push_back({"", {i}});
    }
  }
  name_lines(lines, settings);
  return lines;
}

}  // namespace abtrain::report
