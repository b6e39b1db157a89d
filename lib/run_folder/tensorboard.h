// The run's events file for TensorBoard: the numbers of metrics.jsonl as scalars, plus the
// configuration as hyperparameters. A resumed run rebuilds the file from metrics.jsonl: events
// logged after the checkpoint are dropped from both.
//
// An event's wall time is the start of the run plus the event's `seconds`. So the relative axis of
// TensorBoard shows the run's own clock, which stands still between a stop and a resume.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/log.h"
#include "config/run_options.h"
#include "run_folder/backlog.h"

namespace abtrain::run_folder {

// Removes the events files of an earlier run in the folder, or those that this run wrote before
// train.tensorboard was switched off.
void remove_events_files(const std::string& folder);

class TensorBoard {
 public:
  // Writes the file <folder>/events.out.tfevents.START.PART.HOST with the configuration and the
  // lines of metrics.jsonl that a resumed run keeps (`kept_lines`), and retires earlier files. A
  // line that is not JSON is named in the log and skipped. Throws Error(Io).
  TensorBoard(
      const std::string& folder, const config::RunOptions& options, std::string_view kept_lines,
      Log& log);
  TensorBoard(const TensorBoard&) = delete;
  TensorBoard& operator=(const TensorBoard&) = delete;

  // Adds one event of metrics.jsonl, with "event", "step" and "seconds". On failure, retries later.
  void add(const nlohmann::ordered_json& event);
  // As Appender::find_again() (base/files.h).
  std::string find_again() {
    return file_->find_again();
  }

 private:
  std::int64_t start_ = 0;  // start of the run, seconds since 1970
  std::optional<Appender> file_;
  Backlog records_;
};

}  // namespace abtrain::run_folder
