// What a sweep spent on tuning each setting before its runs: tuning.json in the
// sweep's folder, which holds the run folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::report {

struct Setting;

struct Rival {
  std::string sweep;  // the name of the sweep's folder
  std::string name;
  std::string why;           // what it is
  std::int64_t tried = 0;    // settings
  std::int64_t pilots = 0;   // short runs
  double pilot_seconds = 0;  // of their training, together
  std::string chosen;        // "optimizer.lr: 0.04"
};

struct LeftOut {
  std::string name;
  std::string why;
};

struct Tuning {
  std::int64_t settings = 0;  // tried per rival, as asked for
  std::vector<Rival> rivals;
  std::vector<LeftOut> left_out;
};

// Joins the files of all folders that hold these runs, in the order of the
// settings; none where there is no file. Throws Error(DamagedData).
std::optional<Tuning> read_tuning(const std::vector<Setting>& settings);

// "what each rival was given": a row of titles, then one per rival. Names are
// safe to show. The sweep is a column where there are several.
std::vector<std::vector<std::string>> tuning_rows(const Tuning& tuning);

// One line for each that was left out, with why.
std::vector<std::string> left_out_lines(const Tuning& tuning);

}  // namespace abtrain::report
