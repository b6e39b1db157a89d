#include "sweep/slurm_script.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/env.h"
#include "base/error.h"
#include "base/mapped.h"

namespace abtrain::sweep {

namespace {

namespace fs = std::filesystem;

// Quotes a text so that a shell reads it as one word.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "/._-+=,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  return "'" + replaced(word, "'", "'\\''") + "'";
}

// A name that #SBATCH accepts for a job and for the start of a file name.
std::string job_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return std::string_view(" '\"\\%").find(c) != std::string_view::npos; },
      '_');
  return name;
}

// Quotes a value for an #SBATCH line. Slurm reads these, not the shell: for it
// '#' starts a comment, and a backslash escapes the next character.
std::string option_value(const std::string& value) {
  return value.find_first_of(" '\"#\\") == std::string::npos ? value : in_quotes(value);
}

// A newline would start a new line of the batch file: after a comment, that is
// a command.
void check_plain(const SlurmArray& array) {
  std::vector<std::string> texts = array.arguments;
  texts.insert(texts.end(), {array.name, array.program, array.root, array.folder});
  for (const std::string& text : texts) {
    ABT_CHECK(
        printable(text) == text, Usage,
        "--emit-slurm: control characters are not allowed in a batch file; got "
        "'{}'",
        printable(text));
  }
}

constexpr const char* kTemplate = R"(#!/usr/bin/env bash
# The {points} points of the sweep {name}, each a job of an array, written by
#   abtrain {command} --emit-slurm
# {submit}; submit it again to train what is missing (points that
# are finished end at once). slurm/README.md says more, and what sbatch can
# override.
# {tasks}
##SBATCH --account=ACCOUNT
##SBATCH --partition=PARTITION
#SBATCH --job-name={job}
#SBATCH --array=0-{last}{at_once}
#SBATCH --nodes=1
#SBATCH --ntasks={ntasks}
#SBATCH --cpus-per-task={cpus}
##SBATCH --gpus-per-node={workers}
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --chdir={folder}
#SBATCH --output=%x-%A_%a.out

root={root}
ABTRAIN=${{ABTRAIN:-{program}}}
{rounds}source "$root/slurm/job.sh" || exit 66
[[ -n ${{SLURM_ARRAY_TASK_ID-}} ]] || fail 2 "no array task: sbatch --array=0-{last}"
run_abtrain {command}{round} --task "$SLURM_ARRAY_TASK_ID"
)";

// Without a task, the script submits itself once per round.
constexpr const char* kRounds = R"(if [[ -z ${{SLURM_JOB_ID-}} ]]; then
  job= round=0
  for last in {last}; do
    round=$((round + 1))
    job=$(sbatch --parsable --array=0-$last{at_once} ${{job:+--dependency=afterany:$job}} \
      --export=ALL,ABTRAIN_ROUND=$round "$@" "$0") || exit
    echo "round $round: job $job"
  done
  exit
fi
)";

}  // namespace

std::string slurm_script(const SlurmArray& array, const std::vector<PointRun>& runs) {
  check_plain(array);
  const auto [least, most] =
      std::ranges::minmax(runs, {}, [](const PointRun& run) { return run.options.workers; });
  const std::int64_t workers = most.options.workers;
  const bool alike = least.options.workers == workers;
  const std::string command = "sweep " + join(mapped(array.arguments, quoted), " ");
  const bool has_rounds = !array.rounds.empty();
  const auto last = [](std::size_t points) { return std::to_string(points - 1); };
  const std::string at_once = array.at_once > 0 ? formatted("%{}", array.at_once) : "";
  return formatted(
      kTemplate, fmt::arg("points", runs.size()), fmt::arg("name", array.name),
      fmt::arg("command", command),
      fmt::arg(
          "tasks", alike ? formatted("Each Slurm task is a worker; tasks per point: {}.", workers)
                         : formatted(
                               "The points have {} to {} workers, so each is one task\n# "
                               "whose workers are its threads, on one node.",
                               least.options.workers, workers)),
      fmt::arg("job", option_value(job_name(array.name))), fmt::arg("last", runs.size() - 1),
      fmt::arg("at_once", at_once),
      fmt::arg(
          "submit",
          has_rounds ? "`bash FILE [SBATCH OPTIONS]` submits all rounds" : "Submit it with sbatch"),
      fmt::arg(
          "rounds", has_rounds
                        ? formatted(
                              kRounds, fmt::arg("last", join(mapped(array.rounds, last), " ")),
                              fmt::arg("at_once", at_once))
                        : ""),
      fmt::arg("round", has_rounds ? " --round \"${ABTRAIN_ROUND:-1}\"" : ""),
      fmt::arg("ntasks", alike ? workers : 1), fmt::arg("cpus", alike ? 1 : workers),
      fmt::arg("workers", workers), fmt::arg("folder", option_value(array.folder)),
      fmt::arg("root", quoted(array.root)), fmt::arg("program", quoted(array.program)));
}

std::string slurm_root(const std::string& program) {
  const fs::path place = fs::path(program).parent_path();
  std::vector<std::string> roots{
      (place.parent_path() / "share/abtrain").string(), place.parent_path().parent_path().string()};
  if (const auto named = env("ABTRAIN_ROOT")) {
    roots = {*named};
  }
  for (const std::string& root : roots) {
    if (fs::exists(root + "/slurm/job.sh")) {
      return fs::absolute(root).lexically_normal().string();
    }
  }
  throw Error(
      ErrorKind::MissingInput, formatted(
                                   "slurm/job.sh, which batch files need, was not found in {}; set "
                                   "ABTRAIN_ROOT to the folder of abtrain",
                                   join(roots, ", ")));
}

}  // namespace abtrain::sweep
