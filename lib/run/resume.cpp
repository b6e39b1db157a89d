#include "run/resume.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "base/env.h"
#include "base/error.h"
#include "base/options_apply.h"
#include "run/checkpoint_files.h"
#include "run/config.h"

namespace abtrain::run {

namespace {

namespace fs = std::filesystem;

// What may differ: where and how fast a run is done, not what is learned.
constexpr std::array<std::string_view, 20> kFree{
    "name",
    "output",
    "workers",
    "device",
    "comm",
    "data.root",
    "data.prefetch",
    "data.on_device",
    "data.decode_threads",
    "data.max_damaged",
    "train.threads",
    "train.timeout",
    "train.log_every",
    "train.tensorboard",
    "train.check_replicas",
    "checkpoint.every",
    "checkpoint.keep",
    "evaluate.every",
    "evaluate.batch_size",
    "evaluate.train"};

// With another number of workers groups and batches may change as well.
constexpr std::array<std::string_view, 3> kFreeWithWorkers{
    "method.group_size",
    "data.batch_size",
    "train.accumulate"};

std::map<std::string, std::string> flatten(RunOptions options) {
  std::map<std::string, std::string> all;
  each_key(
      fields_of(options).list(),
      [&](const std::string& key, const Field& field) {
        all[key] = field.print();
      });
  return all;
}

void check_same(
    const RunOptions& before,
    const RunOptions& now,
    const std::string& where) {
  const bool regroups = before.workers != now.workers;
  const auto old_values = flatten(before);
  std::vector<std::string> differences;
  for (const auto& [key, value] : flatten(now)) {
    const bool is_free =
        std::ranges::find(kFree, key) != kFree.end() ||
        (regroups &&
         std::ranges::find(kFreeWithWorkers, key) != kFreeWithWorkers.end());
    const auto old_value = old_values.find(key);
    if (!is_free && old_value != old_values.end() &&
        old_value->second != value) {
      differences.push_back(
          str("  ", key, ": ", old_value->second, " there, ", value, " now"));
    }
  }
  ABT_CHECK(
      differences.empty(),
      Config,
      where,
      " belongs to a run of another configuration:\n",
      join(differences, "\n"),
      "\nTake another --name, or --resume none to start anew");
}

Checkpoint named(const std::string& how, Log& log) {
  if (fs::exists(how + "/" + kManifest)) {
    Checkpoint checkpoint = read_checkpoint(how);
    verify(checkpoint);
    return checkpoint;
  }
  ABT_CHECK(
      fs::is_directory(how),
      MissingInput,
      "--resume: there is no folder '",
      how,
      "'");
  auto checkpoint = newest_checkpoint(how, log);
  ABT_CHECK(
      checkpoint,
      MissingInput,
      "--resume: no checkpoint in '",
      how,
      "' that can be used");
  return *checkpoint;
}

}  // namespace

std::int64_t kept_metrics(
    const ResumeChoice& resume,
    const std::string& run_folder) {
  if (!resume.from) {
    return 0;
  }
  // <run>/checkpoints/step-...
  const fs::path run =
      fs::path(resume.from->folder).parent_path().parent_path();
  std::error_code none;
  return fs::equivalent(run.empty() ? "." : run, run_folder, none)
             ? resume.from->metrics_bytes
             : 0;
}

std::string default_resume() {
  return env("SLURM_JOB_ID") ? "auto" : "none";
}

ResumeChoice choose_resume(
    const std::string& how,
    const RunOptions& options,
    const std::string& run_folder,
    Log& log) {
  ResumeChoice choice;
  if (how == "none") {
    return choice;
  }
  if (how == "auto") {
    clean_checkpoints(run_folder);
    // Written last of all; the model may have been moved away since.
    if (fs::exists(run_folder + "/summary.json")) {
      check_same(read_config(run_folder + "/config.yaml"), options, run_folder);
      choice.finished = true;
      return choice;
    }
    choice.from = newest_checkpoint(run_folder, log);
    if (!choice.from) {
      return choice;
    }
  } else {
    choice.from = named(how, log);
  }
  check_same(
      read_config(choice.from->folder + "/config.yaml"),
      options,
      choice.from->folder);
  return choice;
}

void put_checkpoints_aside(const std::string& run_folder, Log& log) {
  std::error_code ignored;
  clean_checkpoints(run_folder);
  const std::string place = run_folder + "/" + kCheckpoints;
  // One that cannot be read is kept too: somebody may still mend it.
  if (entries_of(run_folder, kStepPrefix).empty()) {
    fs::remove_all(place, ignored);
    return;
  }
  const std::string previous = place + ".previous";
  fs::remove_all(previous, ignored);
  std::error_code error;
  fs::rename(place, previous, error);
  ABT_CHECK(
      !error,
      Io,
      "cannot rename '",
      place,
      "' to '",
      previous,
      "': ",
      error.message());
  log.warning(
      "a fresh start (--resume none): the checkpoints of the run before are "
      "kept in ",
      previous);
}

}  // namespace abtrain::run
