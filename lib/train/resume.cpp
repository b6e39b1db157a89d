#include "train/resume.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "config/config.h"
#include "methods/method_kind.h"
#include "optim/schedule.h"
#include "run_folder/checkpoint_files.h"
#include "train/branch.h"
#include "train/run_differences.h"
#include "weights/export.h"

namespace abtrain::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kStartOver =
    "Choose another --name, or use --overwrite to start over in its place";

void check_same(
    const std::vector<std::string>& differences, const std::string& where,
    const std::string& advice = kStartOver) {
  ABT_CHECK(
      differences.empty(), Config, "{} belongs to a run with another configuration:\n{}\n{}", where,
      join(differences, "\n"), advice);
}

// Lists how config.yaml of the run folder differs from these options.
std::vector<std::string> differences_from(
    const std::string& run_folder, const config::RunOptions& options) {
  try {
    return differences(config::read_config(run_folder + "/config.yaml"), options);
  } catch (const Error&) {
    return {"  its config.yaml is missing or cannot be read"};
  }
}

// Lists how these options differ from `before`, the options of the checkpoint.
std::vector<std::string> differences_at(
    const run_folder::Checkpoint& from, const config::RunOptions& before,
    const config::RunOptions& options, std::int64_t extended = 0) {
  std::vector<std::string> lines = differences(before, options, extended);
  if (const std::string change = weights::change_of_model_file(from.model_file, options);
      lines.empty() && !change.empty()) {
    lines.push_back("  " + change);
  }
  return lines;
}

// Refuses to start if that would lose something of value: a finished run, checkpoints, or the
// results of a run with other settings.
void check_nothing_is_lost(const config::RunOptions& options, const std::string& run_folder) {
  const bool finished = is_there(run_folder + "/summary.json");
  const auto checkpoints = run_folder::list_checkpoints(run_folder);
  std::error_code none;
  const auto metrics = fs::file_size(run_folder + "/metrics.jsonl", none);
  const bool is_empty = (none || metrics == 0) && !is_there(run_folder + "/model.safetensors");
  config::RunOptions now = options;
  keep_branch_point(now, run_folder);
  const auto lines = differences_from(run_folder, now);
  const bool same = lines.empty();
  // An unfinished run may be lost if it has no checkpoints and has the same settings or wrote
  // nothing: this start is the next try.
  ABT_CHECK(
      !finished && checkpoints.empty() && (is_empty || same), Config,
      "{}{}{}{}{}Choose another --name to keep it, or use --overwrite to "
      "start over in its place",
      run_folder, finished ? " holds a finished run" : " holds an unfinished run",
      same ? " with the same settings" : " with other settings:\n", join(lines, "\n"),
      !same ? "\n"
      : finished
          ? formatted("; `abtrain report {}` shows it. ", run_folder)
          : formatted(
                ", saved up to step {}; --resume auto continues it. ", checkpoints.front().step));
}

// Refuses an input that the run would remove or replace.
void check_outside(
    const char* key, const std::optional<std::string>& path, const std::string& run_folder) {
  if (!path) {
    return;
  }
  const fs::path folder = real_path(run_folder);
  const fs::path input = real_path(*path);
  const auto parts = std::mismatch(folder.begin(), folder.end(), input.begin(), input.end());
  ABT_CHECK(
      parts.first != folder.end(), Config,
      "{}: {} lies in {}, which this run replaces; give the run another --name", key, *path,
      run_folder);
}

// Text for a message: how to continue training from a model if no checkpoint fits; "" if the run
// folder has no model.
std::string way_from_model(const std::string& run_folder) {
  const std::string model = (fs::path(run_folder) / "model.safetensors").string();
  return is_there(model) ? formatted(
                               "; to continue training from its finished model, start a "
                               "new run with "
                               "model.weights={} (of a run with frozen parts, from what `abtrain "
                               "export --form merged` writes)",
                               model)
                         : "";
}

// The folder that keeps an older checkpoints.previous until its replacement is in place.
std::string replaced_in(const std::string& run_folder) {
  return formatted("{}/{}{}.previous", run_folder, run_folder::kObsolete, config::kCheckpoints);
}

// True if the checkpoint lies in this folder.
bool is_in(const std::string& folder, const run_folder::Checkpoint& checkpoint) {
  std::error_code none;
  return fs::equivalent(fs::path(checkpoint.folder).parent_path(), folder, none);
}

// The checkpoint that `how` names: the folder of a run or of one checkpoint. Its path has no links
// and no slash at the end, so that the parent path is the folder that holds it.
run_folder::Checkpoint named(const std::string& how, Log& log) {
  std::error_code none;
  ABT_CHECK(fs::is_directory(how, none), MissingInput, "--resume: there is no folder '{}'", how);
  const std::string place = real_path(how).string();
  if (is_there(place + "/" + config::kManifest)) {
    return run_folder::verified_checkpoint(place);
  }
  const auto checkpoint = run_folder::newest_checkpoint(place, log);
  ABT_CHECK(
      checkpoint, MissingInput, "--resume: no usable checkpoint in '{}'{}", how,
      way_from_model(how));
  return *checkpoint;
}

}  // namespace

bool is_own(const std::string& run_folder, const run_folder::Checkpoint& checkpoint) {
  return is_in(run_folder + "/" + config::kCheckpoints, checkpoint);
}

ResumeChoice choose_resume(
    const std::string& how, bool overwrite, const config::RunOptions& options,
    const std::string& run_folder, Log& log) {
  run_folder::clean_checkpoints(run_folder);
  run_folder::settle_replaced(run_folder::previous_of(run_folder), replaced_in(run_folder));
  ResumeChoice choice;
  if (how == "auto" && !is_there(run_folder + "/summary.json")) {
    choice.from = run_folder::newest_checkpoint(run_folder, log);
    if (choice.from && overwrite &&
        !differences_at(*choice.from, configuration_of(*choice.from), options).empty()) {
      choice.from.reset();
    }
  } else if (how != "auto" && how != "none") {
    choice.from = named(how, log);
  }
  if (choice.from) {
    const run_folder::Checkpoint& from = *choice.from;
    const config::RunOptions before = configuration_of(from);
    choice.is_own = is_own(run_folder, from);
    ABT_CHECK(
        !is_in(run_folder::previous_of(run_folder), from) ||
            run_folder::entries_of(run_folder, run_folder::kStepPrefix).empty(),
        Config,
        "--resume: {} would be deleted to set aside the newer checkpoints of {}; choose another "
        "--name, or move it elsewhere first",
        from.folder, run_folder);
    choice.changes_length = how != "auto" && choice.is_own && !differences(before, options).empty();
    const auto lines =
        differences_at(from, before, options, choice.changes_length ? from.run_steps : 0);
    check_same(
        lines, from.folder,
        (how == "auto"
             ? kStartOver
             : formatted(
                   "To continue it, leave these keys as they are there; to start over with the new "
                   "values, use {}/{} as the configuration with these keys as overrides, without "
                   "--resume and with another --name",
                   from.folder, config::kConfig)) +
            (lines.empty() ? "" : way_by_branch(options, from)));
  }
  const bool finished = is_there(run_folder + "/summary.json") &&
                        !(choice.changes_length && !differences_from(run_folder, options).empty());
  const bool goes_on = choice.is_own && !finished;
  if (!overwrite && !goes_on) {
    check_nothing_is_lost(options, run_folder);
  }
  if (!choice.is_own) {
    check_outside("model.weights", options.model.weights, run_folder);
    check_outside("model.adapter", options.model.adapter, run_folder);
  }
  return choice;
}

config::RunOptions configuration_of(const run_folder::Checkpoint& checkpoint) {
  return config::read_config(formatted("{}/{}", checkpoint.folder, config::kConfig));
}

std::string default_resume() {
  // sbatch sets ENVIRONMENT, as other systems do. The tasks of a step have SLURM_PROCID, which
  // salloc's shell lacks; `srun --pty`, and whatever is started in it, also has SLURM_PTY_PORT.
  const bool is_batch = env("ENVIRONMENT") == "BATCH";
  const bool is_step = env("SLURM_PROCID") && !env("SLURM_PTY_PORT");
  return env("SLURM_JOB_ID") && (is_batch || is_step) ? "auto" : "none";
}

bool has_finished(
    const std::string& how, bool overwrite, const config::RunOptions& options,
    const std::string& run_folder) {
  // summary.json is written last; the model may have been moved away since.
  if (how != "auto" || !is_there(run_folder + "/summary.json")) {
    return false;
  }
  if (!overwrite) {
    const auto lines = differences(config::read_config(run_folder + "/config.yaml"), options);
    const auto checkpoints = run_folder::list_checkpoints(run_folder);
    check_same(
        lines, run_folder,
        kStartOver + (lines.empty() || checkpoints.empty()
                          ? ""
                          : way_by_branch(options, checkpoints.front())));
    return true;
  }
  return differences_from(run_folder, options).empty();
}

const char* length_key(const config::RunOptions& options) {
  return options.train.seconds > 0 ? "train.seconds"
         : options.train.steps > 0 ? "train.steps"
                                   : "train.epochs";
}

void check_same_past(
    const config::RunOptions& options, const run_folder::Checkpoint& from,
    const RunLength& length) {
  if (length.by_clock) {
    return;  // a run limited by time plans only its steps to come
  }
  const RunLength before{length.steps_per_epoch, from.run_steps};
  const methods::MethodKind& kind = methods::kind_of(options.method);
  const methods::Timeline earlier = kind.timeline(options.method, before);
  const methods::Timeline later = kind.timeline(options.method, length);
  // A method's event (a synchronization, ...) after the earlier run's last step is no difference:
  // the longer run starts with it.
  const auto parts = later.parts_from(earlier, std::min(from.step, before.steps - 1));
  ABT_CHECK(
      !parts, Config,
      "{}: a run of {} steps with {} differs from the continued run after step {}, because some "
      "lengths are percentages of the continued run's {} steps; give them in steps instead: {}",
      length_key(options), length.steps, options.method.name, parts.value_or(0), before.steps,
      shares_in_steps(options, before.steps));
}

void check_longer(
    const config::RunOptions& options, const run_folder::Checkpoint& from, const RunLength& length,
    Log& log) {
  const RunLength before{length.steps_per_epoch, from.run_steps};
  ABT_CHECK(
      length.steps >= before.steps, Config,
      "{}: a run can be extended, not shortened: expected at least the {} "
      "steps that it has, got {}",
      length_key(options), before.steps, length.steps);
  check_same_past(options, from, length);
  const std::string way =
      way_from_model(fs::path(from.folder).parent_path().parent_path().string());
  if (from.step < before.steps && !way.empty()) {
    log.info(
        "the run continues from step {}: a longer run would not have passed "
        "through its end after step {}{}",
        from.step, before.steps, way);
  }
  const optim::Schedule old_rate(options.schedule, options.optimizer.lr, before);
  const optim::Schedule new_rate(options.schedule, options.optimizer.lr, length);
  std::int64_t same = 0;
  while (same < from.step && old_rate.at(same) == new_rate.at(same)) {
    ++same;
  }
  if (length.steps == before.steps) {
    return;  // the same length in another unit
  }
  if (same == from.step) {
    log.info(
        "the run is extended from {} to {} steps, as if it had been that long "
        "from the start",
        before.steps, length.steps);
  } else {
    log.warning(
        "the run is extended from {} to {} steps, and from step {} on the "
        "learning rate is that of the longer run: {} instead of {}. The steps so far followed the "
        "shorter schedule, so the result differs from that of a run that has {} steps from the "
        "start",
        before.steps, length.steps, from.step, new_rate.at(from.step),
        old_rate.at(std::min(from.step, before.steps - 1)), length.steps);
  }
}

void put_checkpoints_aside(const std::string& run_folder, Log& log) {
  std::error_code error;
  run_folder::clean_checkpoints(run_folder);
  const std::string place = run_folder + "/" + config::kCheckpoints;
  // A checkpoint that cannot be read is kept too: somebody may still repair it.
  if (run_folder::entries_of(run_folder, run_folder::kStepPrefix).empty()) {
    fs::remove(place, error);  // fails if the folder holds something or could not be read
    return;
  }
  const std::string previous = run_folder::previous_of(run_folder);
  const std::string replaced = replaced_in(run_folder);
  run_folder::settle_replaced(previous, replaced);
  run_folder::replace_folder(place, previous, replaced);
  fs::remove_all(replaced, error);
  log.warning("starting fresh: the checkpoints of the previous run are kept in {}", previous);
}

}  // namespace abtrain::train
