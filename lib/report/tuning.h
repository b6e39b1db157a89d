// What a sweep spent on tuning each setting before its runs: tuning.json in the
// sweep's folder, which holds the run folders.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::report {

struct Setting;

// What a comparison of rivals was to answer: who is best within a time.
struct Question {
  double seconds = 0;     // of training; 0: in equally many steps
  std::string bandwidth;  // of a node's link, as "1Gbit"; "": as the runs themselves took it
  std::string latency;
  std::int64_t nodes = 0;
  bool operator==(const Question&) const = default;
};

// As the lists of the file: of each rival "name", "why", "tried" (settings),
// "pilots" (short runs), "pilot_seconds" (of their training, together) and
// "chosen" ("optimizer.lr: 0.04"), after "sweep", the name of the folder; of
// each that was left out "name", "why" and "kind" ("diverged" or "other").
struct Tuning {
  std::int64_t settings = 0;  // tried per rival, as asked for
  nlohmann::ordered_json rivals = nlohmann::ordered_json::array();
  nlohmann::ordered_json left_out = nlohmann::ordered_json::array();
  // The first file's question; none if another file asks otherwise or has no question.
  std::optional<Question> question = {};
};

// Joins the files of all folders that hold these runs, in the order of the
// settings; none where there is no file. Throws Error(DamagedData).
std::optional<Tuning> read_tuning(const std::vector<Setting>& settings);

// Why a rival was left out that the user did not name.
inline constexpr const char* kNotAsked = "not in --only";
// Whether --only left out usual rivals.
bool is_partial(const Tuning& tuning);

// "what each rival was given": a row of titles, then one per rival. Names are
// safe to show. The sweep is a column where there are several.
std::vector<std::vector<std::string>> tuning_rows(const Tuning& tuning);

// One line for all that were left out for the same reason.
std::vector<std::string> left_out_lines(const Tuning& tuning);

}  // namespace abtrain::report
