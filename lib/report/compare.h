// Compares runs (`abtrain report`): first the time to a given accuracy, or for a text to given bits
// per byte, then the figures that explain it.
//
// Runs that differ only in seed, name and output are repeats of one setting and share one row. A
// setting's time to the target is the median over its repeats. A repeat that missed the target
// counts as infinite, so a setting has not reached the target if half or more of its repeats missed
// it. All other figures are means over the repeats that finished, with the sample standard
// deviation (n - 1). A setting with a diverged repeat ranks below all settings without one, and
// gets no mark.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/run_record.h"
#include "report/tuning.h"

namespace abtrain::report {

// Repeats of one setting, in the order of their seeds.
struct Setting {
  std::string name;
  std::vector<RunRecord> runs;

  std::size_t finished() const;
  bool has_diverged() const;
  // The values that `of_run` returns, without those runs for which it returns none.
  std::vector<double> values(
      const std::function<std::optional<double>(const RunRecord&)>& of_run) const;
};

struct Comparison {
  std::optional<double> target;  // an accuracy from 0 to 1, or bits per byte
  // Sorted by data, then by time to the target, then by quality (Score), highest first. Settings
  // with diverged runs follow, and last those without a finished run.
  std::vector<Setting> settings;
  std::vector<std::string> varying;  // configuration keys whose values differ
  // Files or runs that could not be read, one line each: file, line, why.
  std::vector<std::string> skipped;
  // The first line of the report (best_within() in verdict.h); "" without a Question (tuning.h).
  std::string answer = {};
  // Sentences for below the table (verdict.h).
  std::vector<std::string> verdict = {};
  std::optional<Tuning> tuning = {};
};

// A key of the configuration and the value that runs must have (select.h).
struct Condition {
  std::string key;
  std::string value;
};

// Reads and groups the runs below `paths` that match `where`. Skips a run that cannot be read; if
// none can be read, throws a LocatedError of the first failure's kind.
Comparison compare(
    const std::vector<std::string>& paths, std::optional<double> target,
    Spectra spectra = Spectra::Read, const std::vector<Condition>& where = {});

// A figure of the first evaluation that reaches the target; infinite if there is none, or if the
// run has diverged.
double at_arrival(const RunRecord& run, std::optional<double> target, double Evaluation::*figure);

// Reasons, each with the names of the settings that it applies to, in the order of first mention.
using NamesByReason = std::vector<std::pair<std::string, std::vector<std::string>>>;
void add_name(NamesByReason& all, const std::string& reason, const std::string& name);

// The indices of the settings of each data set: figures of different data
// cannot be compared.
std::vector<std::vector<std::size_t>> by_data(const std::vector<Setting>& settings);

// Mean quality of the finished runs; -infinity if a run has diverged, which is the worst result, or
// if none has finished.
double quality_of(const Setting& setting);

// True if at least one run of the setting lacked cores because of other programs.
bool runs_beside_others(const Setting& setting);

// `values` must not be empty; mean and median may be infinite.
double mean(const std::vector<double>& values);
double median(std::vector<double> values);
// The standard deviation of the sample (n - 1); none for fewer than two values.
std::optional<double> standard_deviation(const std::vector<double>& values);

}  // namespace abtrain::report
