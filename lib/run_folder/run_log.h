// Writes the log of a run: metrics.jsonl, its numbers for TensorBoard, and progress lines for the
// user. Only worker 0 has a RunLog. A full disk does not end the run (run_folder/backlog.h).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "config/run_options.h"
#include "run_folder/backlog.h"
#include "run_folder/tensorboard.h"

namespace abtrain::run_folder {

class RunLog {
 public:
  // Keeps the whole lines in the first `keep` bytes of `folder`/metrics.jsonl (-1: in the whole
  // file), and appends to them. With train.tensorboard, the numbers of all lines go to TensorBoard
  // too.
  RunLog(
      const config::RunOptions& options, const std::string& folder, Log& log,
      std::int64_t keep = 0);
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // Appends {"event": name, "step": step, "seconds": seconds since the start,
  // fields...}.
  void event(const char* name, std::int64_t step, const nlohmann::ordered_json& fields);
  // Updates a status line on a terminal; elsewhere logs a line every half minute. `rate`: per
  // second, in the given unit (images, examples or tokens).
  void progress(
      std::int64_t step, std::int64_t total, const std::string& phase, double loss, double rate,
      const char* unit);
  Log& log() {
    return log_;
  }
  // Sets the run's clock to this time, or to the last event's time if that is later.
  void set_seconds(double seconds) {
    watch_ = Stopwatch(std::max(seconds, last_event_));
  }
  // Forces metrics.jsonl to disk and returns its length in bytes.
  std::int64_t flush();
  // Ends the log. Throws Error(Io) if lines of metrics.jsonl still cannot be written.
  void finish();

 private:
  // Continues in new files, with a warning, if another process has removed or replaced the old
  // files. Throws Io.
  void find_files_again();
  // Runs the body. Logs its Error as a warning, unless it was the last one logged here.
  void try_to(const std::function<void()>& body);

  Log& log_;
  Appender writer_;
  Backlog lines_;
  std::optional<TensorBoard> board_;
  Stopwatch watch_;
  double last_event_ = 0;  // `seconds` of the last event
  double last_progress_ = 0;
  std::string problem_;  // the last that try_to() logged
};

}  // namespace abtrain::run_folder
