// All methods beside each other on one configuration, before anything is trained: what each sends,
// how long that takes on a link, and what it needs (`abtrain plan CONFIG --methods`).
//
// The rows are all rivals (rival_sketches.h) at the configured length, and the configuration
// itself. A row has the figures of the plan of that configuration alone.
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
    Sets set;  // the overrides that make the configuration this row
    plan::Outline outline;
  };
  std::string title = {};       // of the configuration: name, model, data and workers
  std::string configured = {};  // the row that is the configuration itself
  std::int64_t parameters = 0;  // of the small networks; 0: there are none
  std::string network = {};     // of the seconds; "": none were asked for
  bool measured = false;        // with the time that each row computes; else only the link works
  std::vector<Row> rows = {};   // by seconds, without them by bytes: the least first
  std::vector<std::pair<std::string, std::string>> left_out = {};  // names, and why they cannot run
};

// `request.compute`, if it is given, holds for all rows; otherwise each of them is measured, while
// `log` shows which. Throws as list_rivals().
MethodTable method_table(
    const std::string& config, const Sets& sets, const std::optional<plan::TimeRequest>& request,
    const std::vector<std::string>& folders, Log& log);

// For people, and for programs as docs/plan.md describes it.
std::string method_table_text(const MethodTable& table);
nlohmann::ordered_json method_table_json(const MethodTable& table);

}  // namespace abtrain::sweep
