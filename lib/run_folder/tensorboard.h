// The run's events file for TensorBoard: what metrics.jsonl says, and nothing
// else but the configuration. So the file can be made anew from metrics.jsonl,
// which is how a resumed run begins: what was logged after the checkpoint is
// gone from both.
//
// Wall times are the start's plus an event's `seconds`: the relative axis of
// TensorBoard is the run's own clock, which stands still between a stop and a
// resume. Errors: Io.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/log.h"
#include "config/run_options.h"

namespace abtrain::run_folder {

// Those of an earlier run, or of this one before it was told to write none.
void remove_events_files(const std::string& folder);

class TensorBoard {
 public:
  // Writes the file <folder>/events.out.tfevents.START.PART.HOST with the
  // configuration and the lines of metrics.jsonl that a resumed run goes on
  // from, in place of an earlier one, which is emptied. A line that is no JSON
  // is named in the log and left out.
  TensorBoard(
      const std::string& folder,
      const config::RunOptions& options,
      std::string_view kept_lines,
      Log& log);

  // One event of metrics.jsonl, with "event", "step" and "seconds".
  void add(const nlohmann::ordered_json& event);

 private:
  std::int64_t start_ = 0;  // of the run: seconds since 1970
  std::optional<Appender> file_;
};

}  // namespace abtrain::run_folder
