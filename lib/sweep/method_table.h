// A table of all methods for one configuration, before anything is trained: the bytes that each
// method sends, their time on a link, memory and parameters (`abtrain plan CONFIG --methods`).
//
// The rows are all rivals (rival_sketches.h) at the configured length, and the configuration
// itself. A row has the same figures as a plan of its configuration.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "plan/plan.h"
#include "sweep/rivals.h"

namespace abtrain::sweep {

struct MethodTable {
  struct Row {
    std::string name;
    std::string why;
    Sets set;  // the overrides that turn the configuration into this row
    plan::Outline outline;
  };
  std::string title = {};       // name, model, data and workers of the configuration
  std::string configured = {};  // name of the row that is the configuration itself
  std::int64_t parameters = 0;  // of the small networks; 0: there are none
  std::string network = {};     // the link that seconds refer to; "": none were requested
  bool measured = false;        // whether each row's computing was timed; else only the link
  std::vector<Row> rows = {};   // ascending by seconds; without seconds, by bytes
  std::vector<std::pair<std::string, std::string>> left_out = {};  // names, and why they cannot run
};

// If `request.compute` is given, it holds for all rows; otherwise each row is measured, and `log`
// shows which one. Throws as list_rivals().
MethodTable method_table(
    const std::string& config, const Sets& sets, const std::optional<plan::TimeRequest>& request,
    const std::vector<std::string>& folders, Log& log);

// Return the table as text, and as JSON with the keys that docs/plan.md lists.
std::string method_table_text(const MethodTable& table);
nlohmann::ordered_json method_table_json(const MethodTable& table);

}  // namespace abtrain::sweep
