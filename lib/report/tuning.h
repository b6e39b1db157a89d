// Reads how each rival (a method in a comparison) was tuned before its runs, from tuning.json in
// the sweep's folder, which also holds the run folders.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::report {

struct Setting;

// The question that a comparison of rivals answers: which one is best within a time.
struct Question {
  double seconds = 0;     // of training; 0: equally many steps for all
  std::string bandwidth;  // of a node's link, as "1Gbit"; "": seconds are as measured
  std::string latency;
  std::int64_t nodes = 0;
  bool operator==(const Question&) const = default;
};

// The lists are as in tuning.json. Each rival has "sweep", the name of the folder, then "name",
// "why", "tried" (number of hyperparameter settings), "pilots" (number of short runs),
// "pilot_seconds" (total training time of the pilots) and "chosen" ("optimizer.lr: 0.04"). Each
// rival that was left out has "name", "why" and "kind" ("diverged" or "other").
struct Tuning {
  std::int64_t settings = 0;  // number to try per rival, as requested
  nlohmann::ordered_json rivals = nlohmann::ordered_json::array();
  nlohmann::ordered_json left_out = nlohmann::ordered_json::array();
  // The first file's question; none if another file has a different one or none.
  std::optional<Question> question = {};
};

// Joins the files tuning.json of all folders that hold these runs, in the order of the settings;
// nullopt if there is none. Throws Error(DamagedData).
std::optional<Tuning> read_tuning(const std::vector<Setting>& settings);

// The reason for leaving out a rival that the user did not name.
inline constexpr const char* kNotAsked = "not in --only";
// True if --only left out rivals that would take part by default.
bool is_partial(const Tuning& tuning);

// "what each rival was given": a row of titles, then one row per rival. Names are safe to show.
// There is a column for the sweep if there are several.
std::vector<std::vector<std::string>> tuning_rows(const Tuning& tuning);

// One line for each reason, with all rivals that were left out for it.
std::vector<std::string> left_out_lines(const Tuning& tuning);

}  // namespace abtrain::report
