#include "report/front.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace abtrain::report {

namespace {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

KeyValues without_length(KeyValues keys) {
  std::erase_if(keys, [](const auto& key) {
    return key.first == "train.steps" || key.first == "train.epochs";
  });
  return keys;
}

bool beats(const FrontPoint& a, const FrontPoint& b) {
  return a.quality >= b.quality && a.cost <= b.cost && (a.quality > b.quality || a.cost < b.cost);
}

// What both begin with: "ab_1200" and "ab_1400" with "ab", "r4_200" and "r4"
// with "r4". A number that differs is left out as a whole.
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
      std::string("accuracy,bits_per_byte,") + kFrontCosts + (target ? ",seconds_to_target" : ""),
      target);
  for (auto column = columns.begin() + 2; column != columns.end(); ++column) {
    column->best = column->is_median ? Best::None : Best::Front;
  }
  return columns;
}

std::vector<std::optional<FrontPoint>> front_points(
    const Column& cost, const std::vector<Setting>& settings) {
  std::vector<std::optional<FrontPoint>> points;
  for (const Setting& setting : settings) {
    const auto spent = cost.figure(setting).value;
    points.push_back(
        setting.finished() > 0 && spent ? std::optional(FrontPoint{quality_of(setting), *spent})
                                        : std::nullopt);
  }
  return points;
}

std::vector<bool> on_front(const std::vector<std::optional<FrontPoint>>& points) {
  std::vector<bool> there;
  for (const auto& point : points) {
    there.push_back(point && std::ranges::none_of(points, [&](const auto& other) {
                      return other && beats(*other, *point);
                    }));
  }
  return there;
}

std::vector<bool> on_front(
    const std::vector<std::optional<FrontPoint>>& points,
    const std::vector<std::vector<std::size_t>>& groups) {
  std::vector<bool> there(points.size());
  for (const auto& members : groups) {
    std::vector<std::optional<FrontPoint>> own;
    for (const std::size_t i : members) {
      own.push_back(points[i]);
    }
    const std::vector<bool> found = on_front(own);
    for (std::size_t k = 0; k < members.size(); ++k) {
      there[members[k]] = found[k];
    }
  }
  return there;
}

std::vector<FrontLine> front_lines(const std::vector<Setting>& settings) {
  struct Group {
    KeyValues keys;
    FrontLine line;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const KeyValues& own = settings[i].runs.front().keys;
    KeyValues keys = without_length(own);
    // Settings of equal keys are told apart by their names, so they are no
    // lengths of one another.
    const auto group = std::ranges::find_if(groups, [&](const Group& g) {
      return g.keys == keys && std::ranges::none_of(g.line.settings, [&](std::size_t j) {
               return settings[j].runs.front().keys == own;
             });
    });
    if (group != groups.end()) {
      group->line.settings.push_back(i);
    } else {
      groups.push_back({std::move(keys), {"", {i}}});
    }
  }
  std::vector<FrontLine> lines;
  for (Group& group : groups) {
    lines.push_back(std::move(group.line));
  }
  name_lines(lines, settings);
  return lines;
}

}  // namespace abtrain::report
