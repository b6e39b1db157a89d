#include "sweep_slurm.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/mapped.h"
#include "choice_option.h"
#include "configuration.h"
#include "sweep/slurm_script.h"
#include "training.h"

namespace abtrain::app {

namespace {

namespace fs = std::filesystem;

// Copies the scripts that batch files use to the working folder, because the program's own folder
// may be in an image that the host does not see. Returns the folder of the copies.
std::string copied_scripts(const std::string& root, const std::string& folder) {
  const std::string copy = folder + "/abtrain-slurm";
  for (const char* part : {"slurm", "scripts"}) {
    make_folders(copy + "/" + part);
  }
  for (const char* file :
       {"slurm/job.sh", "slurm/step.sh", "slurm/node_left.sh", "scripts/restart.sh",
        "scripts/pass_signals.sh"}) {
    const std::string to = copy + "/" + file;
    atomic_write(to, read_file(root + "/" + file));
    fs::permissions(
        to, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
        fs::perm_options::add);
  }
  return copy;
}

// Logs notes on the batch file for the user.
void describe(
    const sweep::SlurmArray& array, const sweep::SlurmOptions& given, std::size_t points,
    Log& log) {
  const std::size_t jobs = array.jobs_of(points);
  std::vector<std::string> kept = array.options.lines();
  std::erase_if(kept, [lines = given.lines()](const std::string& line) {
    return std::ranges::count(lines, line) > 0;
  });
  if (!kept.empty()) {
    log.info("kept from the batch file before: {}", join(kept, "  "));
  }
  if (array.needs.minutes > 0) {
    log.info(
        "time limit of a job: {}, {}",
        human_seconds(60.0 * static_cast<double>(array.needs.minutes)), array.needs.minutes_from);
  }
  const std::string hook = array.folder + "/slurm-hook.sh";
  log.info(
      "{} is sourced first{}", hook,
      is_there(hook) ? "" : " if you write it: modules, a virtual environment");
  if (jobs > sweep::kManyJobs) {
    log.warning(
        "the array has {} jobs, and Slurm's limit MaxArraySize is 1001 by default (`scontrol show "
        "config` says it); --points-per-job {} makes at most {}",
        jobs, (points + sweep::kManyJobs - 1) / sweep::kManyJobs, sweep::kManyJobs);
  }
}

}  // namespace

void add_slurm_options(CLI::App& command, SlurmArgs& args) {
  constexpr const char* kSlurm = "Slurm (the next --emit-slurm to the same file keeps these)";
  command
      .add_option(
          "--emit-slurm", args.file,
          "write a batch file for sbatch to FILE (an older one is replaced) or "
          "to standard output")
      ->type_name("[FILE]")
      ->expected(0, 1)
      ->group(kSlurm);
  in_range<std::int64_t>(
      command.add_option(
          "--points-per-job", args.points_per_job,
          "points that a job trains one after the other (default 1)"),
      1, 100'000)
      ->group(kSlurm);
  add_repeated(
      command, "--sbatch", args.sbatch, "OPTION",
      "an option of sbatch, such as --sbatch=--partition=gpu, in place of the batch file's own; "
      "may be repeated");
  command.get_option("--sbatch")->group(kSlurm);
  command
      .add_option(
          "--launcher", args.launcher,
          "the words that start abtrain on a node in place of its path, such as "
          "\"apptainer run --nv my.sif\"")
      ->type_name("WORDS")
      ->group(kSlurm);
}

void check_slurm(const SlurmArgs& args, bool force) {
  check_output(
      args.file.value_or(""), {"--emit-slurm", "a batch file of a sweep", sweep::is_batch_file},
      force);
  ABT_CHECK(
      args.file || (!args.points_per_job && args.sbatch.empty() && !args.launcher), Usage,
      "--points-per-job, --sbatch and --launcher go with --emit-slurm");
}

void emit_slurm(
    const SlurmArgs& args, const sweep::Sweep& whole, const sweep::Sweep& first,
    const std::vector<std::string>& arguments, std::optional<std::int64_t> jobs) {
  const bool is_file = names_file(*args.file);
  const std::string folder = fs::current_path().string();
  const sweep::SlurmOptions given{
      jobs, args.points_per_job, args.launcher, mapped(args.sbatch, sweep::read_batch_option)};
  sweep::SlurmOptions kept;
  std::error_code error;
  if (is_file && fs::is_regular_file(*args.file, error)) {
    kept = sweep::kept_options(read_file(*args.file), whole.name, *args.file);
  }
  const auto runs = checked_runs(first, false);
  Log log;
  log_notes(runs, log);
  sweep::SlurmArray array{
      .name = whole.name,
      .program = env("ABTRAIN_LAUNCHER").value_or(program_path()),
      .root = sweep::slurm_root(program_path()),
      .folder = folder,
      .arguments = arguments,
      .options = sweep::completed(given, kept)};
  sweep::NeedsRequest request{
      .points_per_job =
          std::min<std::int64_t>(array.options.points_per_job.value_or(1), std::ssize(runs)),
      .time = !array.options.sets("time")};
  if (whole.halving) {
    request.length = sweep::length_of(*whole.halving, 0);
    for (std::size_t i = 0; i < sweep::rounds_of(whole); ++i) {
      array.rounds.push_back(sweep::runs_in(whole, i));
    }
  }
  sweep::slurm_script(array, runs);  // refuses bad names before the time is measured
  array.needs = sweep::slurm_needs(runs, request, log);
  if (array.options.launcher) {
    array.root = copied_scripts(array.root, folder);
  }
  const std::string script = sweep::slurm_script(array, runs);
  if (!is_file) {
    print(script, /*exact=*/true);
  } else {
    atomic_write(*args.file, script);
  }
  describe(array, given, runs.size(), log);
  const std::size_t count = array.jobs_of(runs.size());
  log.info(
      "{}: {} points{}{}; {}", is_file ? *args.file : "standard output", runs.size(),
      array.rounds.empty() ? "" : " in its first round",
      count < runs.size() ? formatted(" in {} jobs", count) : "",
      array.rounds.empty() ? "submit it with sbatch" : "bash submits all rounds");
}

}  // namespace abtrain::app
