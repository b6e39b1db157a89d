#include "run_folder/run_log.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "run_folder/run_lock.h"

namespace abtrain::run_folder {

namespace {

// Seconds between two progress lines: on a terminal, and elsewhere (in a job's
// log).
constexpr double kLiveSeconds = 0.2;
constexpr double kPlainSeconds = 30;

// Returns `seconds` of the last of these lines; 0 if that line has none.
double seconds_of_last(std::string_view lines) {
  if (lines.ends_with('\n')) {
    lines.remove_suffix(1);
  }
  JsonProblem ignored;
  const nlohmann::ordered_json last = parse_json(lines.substr(lines.rfind('\n') + 1), ignored);
  return last.is_object() ? value_in<double>(last, "seconds") : 0;
}

}  // namespace

RunLog::RunLog(
    const config::RunOptions& options, const std::string& folder, Log& log, std::int64_t keep)
    : log_(log),
      writer_(folder + "/metrics.jsonl"),
      lines_([this](std::string_view lines) { writer_.write(lines); }, log) {
  writer_.keep_lines(keep);
  const std::string kept =
      writer_.size() > 0 ? read_file(writer_.path(), kMaxLines) : std::string();
  last_event_ = seconds_of_last(kept);
  if (options.train.tensorboard) {
    board_.emplace(folder, options, kept, log);
  } else {
    remove_events_files(folder);
  }
}

void RunLog::event(const char* name, std::int64_t step, const nlohmann::ordered_json& fields) {
  check_run_lock();
  if (std::string_view(name) == "evaluate") {
    try_to([&] { find_files_again(); });
  }
  last_event_ = watch_.seconds();
  nlohmann::ordered_json line = {{"event", name}, {"step", step}, {"seconds", last_event_}};
  line.update(fields);
  lines_.add(line.dump() + "\n");
  if (board_) {
    board_->add(line);
  }
}

std::int64_t RunLog::flush() {
  try_to([&] {
    find_files_again();
    lines_.add("");
    writer_.sync();
  });
  return writer_.size();
}

void RunLog::finish() {
  try_to([&] { find_files_again(); });
  lines_.finish();
}

void RunLog::find_files_again() {
  if (const std::string what = writer_.find_again(); !what.empty()) {
    log_.warning("{}", what);
    writer_.keep_lines();
  }
  if (const std::string what = board_ ? board_->find_again() : ""; !what.empty()) {
    log_.warning("{}", what);
  }
}

void RunLog::try_to(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    check_run_lock();  // the whole folder may be gone
    if (problem_ != error.what()) {
      problem_ = error.what();
      log_.warning("{}", problem_);
    }
  }
}

void RunLog::progress(
    std::int64_t step, std::int64_t total, const std::string& phase, double loss, double rate,
    const char* unit) {
  const double interval = log_.is_live() ? kLiveSeconds : kPlainSeconds;
  if (watch_.seconds() - last_progress_ < interval) {
    return;
  }
  last_progress_ = watch_.seconds();
  const double left =
      step > 0 ? last_progress_ / static_cast<double>(step) * static_cast<double>(total - step) : 0;
  const std::string line = formatted(
      "step {}/{}  {}  loss {:.4f}  {} {}/s  {} left", step, total, phase, loss,
      with_commas(static_cast<std::int64_t>(rate)), unit, human_seconds(left));
  if (log_.is_live()) {
    log_.live(line);
  } else {
    log_.info("{}", line);
  }
}

}  // namespace abtrain::run_folder
