#include "train/branch.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "config/config.h"
#include "config/run_files.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "run_folder/checkpoint_files.h"
#include "train/resume.h"
#include "train/run_differences.h"
#include "weights/export.h"

namespace abtrain::train {

namespace {

namespace fs = std::filesystem;

// Lists the settings that differ although the checkpoint's state depends on them.
std::vector<std::string> misfits(
    const run_folder::Checkpoint& from, const config::RunOptions& options) {
  const config::RunOptions before = configuration_of(from);
  std::vector<std::string> lines = branch_differences(before, options, from.run_steps);
  if (before.workers != options.workers) {
    lines.push_back(formatted("  workers: {} there, {} now", before.workers, options.workers));
  }
  if (before.optimizer.name == options.optimizer.name &&
      optim::make_optimizer(before.optimizer)->moments() !=
          optim::make_optimizer(options.optimizer)->moments()) {
    lines.push_back(formatted(
        "  optimizer.momentum: {} there, {} now", before.optimizer.momentum,
        options.optimizer.momentum));
  }
  if (const std::string change = weights::change_of_model_file(from.model_file, options);
      !change.empty()) {
    lines.push_back("  " + change);
  }
  return lines;
}

std::string name_of(const std::string& run, const run_folder::Checkpoint& from) {
  return formatted("{}@{}{}", run, run_folder::kStepPrefix, from.step);
}

}  // namespace

void keep_branch_point(config::RunOptions& options, const std::string& run_folder) {
  const std::string config = run_folder + "/" + config::kConfig;
  if (!options.branch_from || !is_there(config)) {
    return;
  }
  const run_folder::RunName wanted = run_folder::split_run_name(*options.branch_from);
  try {
    const auto recorded = config::read_config(config).branch_from;
    const run_folder::RunName there = run_folder::split_run_name(recorded.value_or(""));
    const bool same_step =
        !wanted.checkpoint.starts_with(run_folder::kStepPrefix) ||
        run_folder::brief_name(wanted.checkpoint) == run_folder::brief_name(there.checkpoint);
    if (recorded && same_step && real_path(there.run) == real_path(wanted.run)) {
      options.branch_from = recorded;
    }
  } catch (const Error&) {
    // The code that compares the configurations reports this error.
  }
}

run_folder::Checkpoint find_branch_point(
    config::RunOptions& options, const std::string& run_folder, Log& log) {
  const run_folder::RunName named = run_folder::split_run_name(*options.branch_from);
  ABT_CHECK(
      is_there(named.run + "/" + config::kConfig) && !is_there(named.run + "/" + config::kManifest),
      MissingInput,
      "branch_from: expected RUN or RUN@CHECKPOINT, where RUN is the folder of a run, with "
      "config.yaml; got '{}'",
      *options.branch_from);
  std::error_code none;
  ABT_CHECK(
      !fs::equivalent(named.run, run_folder, none), Config,
      "branch_from: {} is this run's own folder; a branch is a new run: give it another --name",
      named.run);
  run_folder::Checkpoint from;
  if (named.checkpoint.empty()) {
    auto newest = run_folder::newest_checkpoint(named.run, log);
    ABT_CHECK(newest, MissingInput, "branch_from: no usable checkpoint in '{}'", named.run);
    from = *std::move(newest);
  } else {
    from = run_folder::named_checkpoint(named.run, named.checkpoint);
  }
  const std::vector<std::string> lines = misfits(from, options);
  ABT_CHECK(
      lines.empty(), Config,
      "branch_from: the state in {} fits only a run with the same values of these keys:\n{}\n"
      "Leave them as they are there",
      from.folder, join(lines, "\n"));
  options.branch_from = name_of(named.run, from);
  return from;
}

void check_branch(
    const config::RunOptions& options, const run_folder::Checkpoint& from, const RunLength& length,
    Log& log) {
  const RunLength before{length.steps_per_epoch, from.run_steps};
  ABT_CHECK(
      length.steps > from.step, Config,
      "{}: {} has done {} steps already: expected a run of more steps, got {}", length_key(options),
      *options.branch_from, from.step, length.steps);
  check_same_past(options, from, length);
  const config::RunOptions earlier = configuration_of(from);
  const optim::Schedule old_rate(earlier.schedule, earlier.optimizer.lr, before);
  const optim::Schedule new_rate(options.schedule, options.optimizer.lr, length);
  const double now = new_rate.at(from.step);
  const std::string there = from.step < before.steps ? formatted("{}", old_rate.at(from.step)) : "";
  log.info(
      "branching off {} for steps {} to {}; the learning rate goes on at {}{}",
      *options.branch_from, from.step + 1, length.steps, now,
      there.empty() || there == formatted("{}", now) ? "" : formatted(" instead of {}", there));
}

std::string way_by_branch(const config::RunOptions& options, const run_folder::Checkpoint& from) {
  const fs::path place = fs::path(from.folder).parent_path();
  try {
    if (place.filename() != config::kCheckpoints || !misfits(from, options).empty()) {
      return "";
    }
  } catch (const Error&) {
    return "";  // the checkpoint cannot be used
  }
  return formatted(
      "; to go on from it with the new values in a new run, use --branch-from {} with another "
      "--name{}",
      name_of(place.parent_path().string(), from),
      from.step < from.run_steps
          ? ""
          : formatted(
                " and a larger {}, or an earlier checkpoint, since this is the end of a run",
                length_key(options)));
}

}  // namespace abtrain::train
