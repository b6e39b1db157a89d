#include "sweep/points.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/mapped.h"
#include "sweep/assignments.h"

namespace abtrain::sweep {

namespace {

constexpr std::size_t kMaxPoints = 100000;

// "method.rank.keep" becomes "keep" if no other key ends in "keep", and "method.name" becomes
// "method".
std::map<std::string, std::string> short_names(const std::set<std::string>& keys) {
  constexpr std::string_view kName = ".name";
  const auto meaning = [&](const std::string& key) {
    return key.ends_with(kName) ? key.substr(0, key.size() - kName.size()) : key;
  };
  std::map<std::string, std::string> names;
  for (const std::string& key : keys) {
    const std::string whole = meaning(key);
    std::size_t begin = whole.rfind('.');
    const auto is_shared = [&](const std::string& tail) {
      return std::ranges::any_of(keys, [&](const std::string& other) {
        return other != key && ("." + meaning(other)).ends_with("." + tail);
      });
    };
    while (begin != std::string::npos && is_shared(whole.substr(begin + 1))) {
      begin = begin == 0 ? std::string::npos : whole.rfind('.', begin - 1);
    }
    names[key] = begin == std::string::npos ? whole : whole.substr(begin + 1);
  }
  return names;
}

// A value as part of a folder's name: "[64, 32]" becomes "64+32".
std::string in_name(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ',') {
      out += '+';
    } else if (
        std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        std::string_view("._-+").find(c) != std::string_view::npos) {
      out += c;
    } else if (std::string_view("[]\"' ").find(c) == std::string_view::npos) {
      out += '_';
    }
  }
  return out;
}

std::string label_of(const Choice& values, const std::map<std::string, std::string>& names) {
  constexpr std::size_t kMaxLength = 180;
  const auto part = [&](const Assignment& assignment) {
    return names.at(assignment.override.key) + "=" + in_name(assignment.text);
  };
  return join(mapped(values, part), ",").substr(0, kMaxLength);
}

// Every combination; the last list varies fastest.
std::vector<Choice> combinations(const std::vector<std::vector<Choice>>& lists) {
  std::vector<Choice> all{{}};
  for (const std::vector<Choice>& choices : lists) {
    std::vector<Choice> longer;
    ABT_CHECK(
        all.size() * choices.size() <= kMaxPoints, Config, "the sweep has more than {} points",
        kMaxPoints);
    for (const Choice& begin : all) {
      for (const Choice& choice : choices) {
        longer.push_back(begin);
        longer.back().insert(longer.back().end(), choice.begin(), choice.end());
      }
    }
    all = std::move(longer);
  }
  return all;
}

// Removes the points that match an item of `exclude`; each item must match at
// least one.
void exclude(const Sweep& sweep, const std::set<std::string>& keys, std::vector<Choice>& points) {
  std::vector<Problem> problems;
  for (const Choice& item : sweep.exclude) {
    bool is_known = true;
    for (const Assignment& assignment : item) {
      const std::string& key = assignment.override.key;
      if (!keys.contains(key)) {
        is_known = false;
        const std::string meant = nearest(key, std::vector<std::string>(keys.begin(), keys.end()));
        problems.push_back(
            {assignment.override.place, key,
             formatted(
                 "is not varied{}",
                 meant.empty() ? "" : formatted(", did you mean '{}'?", meant))});
      }
    }
    if (is_known &&
        std::ranges::none_of(points, [&](const Choice& point) { return contains(point, item); })) {
      problems.push_back({item.front().override.place, "exclude", "no point has these values"});
    }
  }
  std::erase_if(points, [&](const Choice& point) {
    return std::ranges::any_of(
        sweep.exclude, [&](const Choice& item) { return contains(point, item); });
  });
  if (points.empty()) {
    problems.push_back({{sweep.source(), 0, 0, ""}, "exclude", "leaves no point at all"});
  }
  throw_any(problems, ErrorKind::Config);
}

}  // namespace

std::vector<Point> list_points(const Sweep& sweep) {
  const std::vector<Choice> seeds = sweep.seeds.empty() ? std::vector<Choice>{{}} : sweep.seeds;
  std::vector<Choice> all;
  if (!sweep.grid.empty() || sweep.list.empty()) {
    all = combinations(sweep.grid);
  }
  all.insert(all.end(), sweep.list.begin(), sweep.list.end());
  all = combinations({all, seeds});
  std::set<std::string> keys;  // all keys that points set
  for_each_assignment(all, [&](const Assignment& one) { keys.insert(one.override.key); });
  exclude(sweep, keys, all);
  const auto names = short_names(keys);
  std::vector<Point> points;
  for (Choice& values : all) {
    std::string label;
    if (sweep.labels.empty()) {
      label = label_of(values, names);
    } else {
      label = sweep.labels[points.size() / seeds.size()];
      if (!sweep.seeds.empty()) {
        label += "," + label_of({values.back()}, names);
      }
    }
    points.push_back({points.size(), std::move(label), std::move(values)});
  }
  return points;
}

}  // namespace abtrain::sweep
