// The front of a comparison: the settings that no other one beats. One setting beats another if its
// quality (Score) is at least as high, its cost no higher, and one of the two is better. A cost is
// a column in which less is better.
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

// The columns of `--front`: the accuracy, the bits per byte or R^2, with the best one marked; then
// the costs, each with the settings on the front marked; with a target also the time to the target,
// unmarked.
std::vector<Column> front_columns(std::optional<double> target);

struct FrontPoint {
  double quality = 0;
  double cost = 0;
};

// One point per setting: means over its finished runs. None if no run has finished, a run has
// diverged, or the cost is unknown.
std::vector<std::optional<FrontPoint>> front_points(
    const Column& cost, const std::vector<Setting>& settings);

// Returns for each point whether it is on the front of its group. `groups`: indices of points, as
// by_data() and FrontLine::settings hold them.
std::vector<bool> on_front(
    const std::vector<std::optional<FrontPoint>>& points,
    const std::vector<std::vector<std::size_t>>& groups);

// One configuration at several lengths: the settings that differ only in train.steps, train.epochs
// and train.seconds.
struct FrontLine {
  std::string name;                   // the common beginning of the settings' names
  std::vector<std::size_t> settings;  // their indices
};

// Each setting is in one line; the names are distinct.
std::vector<FrontLine> front_lines(const std::vector<Setting>& settings);

}  // namespace abtrain::report
