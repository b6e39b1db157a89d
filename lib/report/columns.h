// The columns of a comparison; they are the same in every output format.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

// Which cells of a column are marked. Front: the cells of settings that no other one beats in
// quality and this column (front.h).
enum class Best { None, Highest, Lowest, Front };

// One cell of the table. The value is infinite if the target was not reached.
struct Figure {
  std::optional<double> value;
  std::optional<double> spread;  // standard deviation over the repeats
  std::string note;              // "2 of 3": how many runs reached the target
  bool is_best = false;
};

struct Column {
  std::string key;    // "bytes": its name in CSV, JSON and --columns
  std::string title;  // "MB sent": its heading in tables
  std::string help;   // what the column means, in one sentence
  double unit = 1;    // the value that is shown as 1, such as 1e6 for MB
  int decimals = 0;   // in the table; -N: N significant digits
  Best best = Best::None;
  bool is_default = false;
  bool is_median = false;  // over the repeats; else the mean
  bool is_time = false;    // a time: not marked if other programs took cores from a run
  std::function<std::optional<double>(const RunRecord&)> of_run = {};

  Figure figure(const Setting& setting) const;
};

// All columns; without a target, the columns about it are left out.
std::vector<Column> all_columns(std::optional<double> target);

// `names`: comma-separated keys, "default" or "all". Throws Error(Usage) for an unknown key, and
// for one that needs a target if none is given.
std::vector<Column> choose_columns(const std::string& names, std::optional<double> target);

// One figure per setting. The best of each data set is marked, but only where
// at least two of its settings differ in the text that is shown.
std::vector<Figure> figures(const Column& column, const std::vector<Setting>& settings);

// Drops the columns in which no setting has a value.
std::vector<Column> shown_columns(
    std::vector<Column> columns, const std::vector<Setting>& settings);

// Returns the legend of the mark (*) beside figures in these columns, such as "best of the column".
std::string mark_text(const std::vector<Column>& columns, const std::vector<Setting>& settings);

// The figure as text for tables: "88.71 ± 0.12", "-" or "not reached (1 of 3)".
std::string to_text(const Column& column, const Figure& figure);
// The number of runs: "3", or "2 of 3" if one has not finished.
std::string seeds_text(const Setting& setting);

}  // namespace abtrain::report
