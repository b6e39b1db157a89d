// The columns of a comparison, the same in every format.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

enum class Best { None, Highest, Lowest };

// One cell. A time that was not reached is infinite.
struct Figure {
  std::optional<double> value;
  std::optional<double> spread;  // standard deviation over the repeats
  std::string note;              // "2 of 3" have reached the target
  bool is_best = false;
};

struct Column {
  std::string key;    // "bytes", in csv, json and --columns
  std::string title;  // "MB sent"
  std::string help;   // a sentence
  double unit = 1;    // what a 1 of the table is: 1e6 of MB
  int decimals = 0;   // of the table; below 0: that many digits
  Best best = Best::None;
  bool is_default = false;
  bool is_median = false;  // else a mean
  std::function<std::optional<double>(const RunRecord&)> of_run = {};

  Figure figure(const Setting& setting) const;
};

// All of them; those of the target only where there is one.
std::vector<Column> all_columns(std::optional<double> target);

// `names`: keys separated by commas, "default" or "all". Throws Error(Usage)
// for others.
std::vector<Column> choose_columns(
    const std::string& names,
    std::optional<double> target);

// Of every setting, the best marked: of at least two that differ as they are
// shown.
std::vector<Figure> figures(
    const Column& column,
    const std::vector<Setting>& settings);

// Without columns that have no figure.
std::vector<Column> shown_columns(
    std::vector<Column> columns,
    const std::vector<Setting>& settings);

// "88.71 ± 0.12", "-", "not reached (1 of 3)"; for people.
std::string to_text(const Column& column, const Figure& figure);
// "3", or "2 of 3" where the others have not ended well.
std::string seeds_text(const Setting& setting);

}  // namespace abtrain::report
