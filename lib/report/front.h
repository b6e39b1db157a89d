// The front of a comparison: the settings that no other one beats. One setting
// beats another if its quality (Score) is as high, its cost no higher, and one
// of the two is better. A cost is a column of which less is better.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/columns.h"
#include "report/compare.h"

namespace abtrain::report {

// The costs that the quality is weighed against, as keys of columns.
inline constexpr const char* kFrontCosts = "train_seconds,bytes,parameters,link_seconds";

// What `--front` shows: the accuracy, the bits per byte or R^2, of which the best is
// marked, then the costs, in each of which the settings on the front are
// marked; with a target the time to it, unmarked.
std::vector<Column> front_columns(std::optional<double> target);

struct FrontPoint {
  double quality = 0;
  double cost = 0;
};

// One point per setting, of means over its finished runs; none where no run has
// finished or the cost is unknown.
std::vector<std::optional<FrontPoint>> front_points(
    const Column& cost, const std::vector<Setting>& settings);

// Whether each point is on the front of its group (by_data(), FrontLine); the
// groups hold the indices of the points.
std::vector<bool> on_front(
    const std::vector<std::optional<FrontPoint>>& points,
    const std::vector<std::vector<std::size_t>>& groups);

// One configuration at several lengths: the settings that differ in nothing but
// train.steps and train.epochs.
struct FrontLine {
  std::string name;                   // what the settings' names begin with
  std::vector<std::size_t> settings;  // their indices
};

// Each setting is in one line; the names are distinct.
std::vector<FrontLine> front_lines(const std::vector<Setting>& settings);

}  // namespace abtrain::report
