// Runs beside each other (`abtrain report`): time to a stated accuracy first,
// what explains it after that.
//
// Runs that differ in nothing but seed, name and output are repeats of one
// setting and make one row. A setting's time to the target is the median over
// its repeats, where one that has missed the target counts as infinite: if half
// of them or more have missed it, the setting has not reached it. All other
// figures are means over the repeats that have ended well, with the standard
// deviation of the sample (n - 1).
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "report/run_record.h"

namespace abtrain::report {

// Repeats of one setting, in the order of their seeds.
struct Setting {
  std::string name;
  std::vector<RunRecord> runs;

  std::size_t finished() const;
};

struct Comparison {
  std::optional<double> target;  // an accuracy, 0 to 1
  // Sorted by time to the target, then by accuracy; unfinished ones last.
  std::vector<Setting> settings;
  std::vector<std::string> varying;  // keys whose values differ
  std::vector<std::string> skipped;  // what could not be read: file, line, why
};

// Reads and groups the runs below `paths`. What cannot be read is skipped; if
// that is all, it throws an error of the first one's kind.
Comparison compare(
    const std::vector<std::string>& paths,
    std::optional<double> target,
    Spectra spectra = Spectra::Read);

// The first evaluation at or above the target.
const Evaluation* arrival(const RunRecord& run, std::optional<double> target);

// Runs of one setting together; names, order and differing keys.
Comparison group_runs(
    std::vector<RunRecord> runs,
    std::optional<double> target);

// Of at least one value; may be infinite.
double median(std::vector<double> values);

}  // namespace abtrain::report
