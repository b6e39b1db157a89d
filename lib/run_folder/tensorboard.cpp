#include "run_folder/tensorboard.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "base/json.h"
#include "base/scalars.h"
#include "base/socket.h"
#include "base/text.h"
#include "run_folder/tensorboard_records.h"

namespace abtrain::run_folder {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kPrefix = "events.out.tfevents.";

// An events file of this program: <kPrefix>START.PART.HOST. TensorBoard reads
// the files of a folder in the order of their names.
struct EventsFile {
  std::int64_t start = 0;
  std::int64_t part = 0;
  std::string name;
};

// The events files of a folder, newest last.
std::vector<EventsFile> events_files(const std::string& folder) {
  std::vector<EventsFile> files;
  for (const fs::path& entry : list_folder(folder)) {
    EventsFile file{0, 0, entry.filename().string()};
    if (!file.name.starts_with(kPrefix)) {
      continue;
    }
    const auto parts = split_text(file.name.substr(kPrefix.size()), '.');
    if (parts.size() > 2 && parts[1].size() >= 4 && read_number(parts[0], file.start) &&
        read_number(parts[1], file.part)) {
      files.push_back(std::move(file));
    }
  }
  return files;
}

// Empties the file, or removes it if it is empty already. A TensorBoard that watches the folder
// moves on to the next file only at the end of the current one, and never if that file is gone. So
// a replaced file stays, empty, until its successor is replaced too.
void retire(const std::string& path) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) == 0) {
    fs::remove(path, ignored);
  } else {
    fs::resize_file(path, 0, ignored);
  }
}

// The moment `seconds` ago, in seconds since 1970.
std::int64_t start_before_now(double seconds) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count() - std::llround(seconds);
}

double seconds_of(const ordered_json& event) {
  constexpr double kMax = 1e9;
  return std::clamp(value_in<double>(event, "seconds"), 0.0, kMax);
}

}  // namespace

void remove_events_files(const std::string& folder) {
  for (const EventsFile& file : events_files(folder)) {
    std::error_code ignored;
    fs::remove(folder + "/" + file.name, ignored);
  }
}

TensorBoard::TensorBoard(
    const std::string& folder, const config::RunOptions& options, std::string_view kept_lines,
    Log& log)
    : records_([this](std::string_view all) { file_->write(all); }, log) {
  const std::vector<std::string> lines = split_text(kept_lines, '\n');
  std::vector<ordered_json> events;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    JsonProblem problem;
    ordered_json event = parse_json(lines[i], problem);
    if (event.is_object()) {
      events.push_back(std::move(event));
    } else if (!lines[i].empty()) {
      log.warning(
          "{}/metrics.jsonl:{}: expected a JSON object{}{}; skipped in the "
          "TensorBoard events",
          folder, i + 1, problem.what.empty() ? "" : ", ", problem.what);
    }
  }
  const std::vector<EventsFile> before = events_files(folder);
  start_ = events.empty()   ? start_before_now(0)
           : before.empty() ? start_before_now(seconds_of(events.back()))
                            : before.back().start;
  std::int64_t part = 0;
  for (const EventsFile& file : before) {
    part = file.start == start_ ? file.part + 1 : part;
  }
  std::string content = tensorboard_head(options, start_);
  for (const ordered_json& event : events) {
    content += tensorboard_record(event, start_);
  }
  const std::string path =
      formatted("{}/{}{}.{:04}.{}", folder, kPrefix, start_, part, host_name());
  atomic_write(path, content);
  for (const EventsFile& file : before) {
    retire(folder + "/" + file.name);
  }
  file_.emplace(path);
}

void TensorBoard::add(const ordered_json& event) {
  records_.add(tensorboard_record(event, start_));
}

}  // namespace abtrain::run_folder
