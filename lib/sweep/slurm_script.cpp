#include "sweep/slurm_script.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
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

// Throws if a text has a control character: a newline in a comment would make the rest of the text
// a command.
void check_plain(const SlurmArray& array) {
  std::vector<std::string> texts = array.arguments;
  texts.insert(texts.end(), {array.name, array.program, array.root, array.folder});
  const auto lines = array.options.lines();
  texts.insert(texts.end(), lines.begin(), lines.end());
  for (const std::string& text : texts) {
    ABT_CHECK(
        printable(text) == text, Usage,
        "--emit-slurm: control characters are not allowed in a batch file; got "
        "'{}'",
        printable(text));
  }
}

constexpr const char* kTemplate = R"(#!/usr/bin/env bash
# The {count} points of the sweep {name}, {each} job of an array, written by
#   abtrain {command} --emit-slurm
# {submit}; submit it again to train what is missing (points that
# are finished end at once). slurm/README.md says more.
# {tasks}
{needs}{kept}{lines}
root={root}
ABTRAIN=${{ABTRAIN:-{program}}}
points=({points})
{rounds}source "$root/slurm/job.sh" || exit 66
run_points {per_job} "${{points[{round}]}}" {command}{round_option}
)";

constexpr const char* kKeptHead =
    R"(# The next --emit-slurm of this sweep to this file keeps these options, unless they
# are given anew. Delete a line to drop its option.
)";

// A script that does not run as a job submits itself once per round.
constexpr const char* kRounds = R"(round=${{ABTRAIN_ROUND:-1}}
if [[ -z ${{SLURM_JOB_ID-}} ]]; then
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

constexpr const char* kWrittenBy = " job of an array, written by\n#   abtrain sweep ";

}  // namespace

std::size_t SlurmArray::jobs_of(std::size_t points) const {
  const auto each = static_cast<std::size_t>(options.points_per_job.value_or(1));
  return (points + each - 1) / each;
}

std::string slurm_script(const SlurmArray& array, const std::vector<PointRun>& runs) {
  check_plain(array);
  const auto [least, most] =
      std::ranges::minmax(runs, {}, [](const PointRun& run) { return run.options.workers; });
  const std::int64_t workers = most.options.workers;
  const bool alike = least.options.workers == workers;
  const std::string command = "sweep " + join(mapped(array.arguments, quoted), " ");
  const bool has_rounds = !array.rounds.empty();
  const std::int64_t per_job = array.options.points_per_job.value_or(1);
  const auto last = [&](std::size_t points) { return std::to_string(array.jobs_of(points) - 1); };
  const std::string at_once = array.options.jobs ? formatted("%{}", *array.options.jobs) : "";
  const SlurmNeeds& needs = array.needs;

  // Options that the user gives replace these.
  std::vector<BatchOption> options{
      {"job-name", job_name(array.name)},
      {"array", formatted("0-{}{}", last(runs.size()), at_once)},
      {"nodes", "1"},
      {"ntasks", std::to_string(alike ? workers : 1)},
      {"cpus-per-task", std::to_string(alike ? 1 : workers)}};
  if (needs.gpus) {
    options.push_back({"gpus-per-node", std::to_string(workers)});
  }
  if (needs.gigabytes > 0) {
    options.push_back({"mem", formatted("{}G", needs.gigabytes)});
  }
  if (needs.minutes > 0) {
    options.push_back({"time", formatted("{}:{:02}:00", needs.minutes / 60, needs.minutes % 60)});
  }
  options.insert(
      options.end(), {{"signal", "USR1@120"},
                      {"requeue"},
                      {"open-mode", "append"},
                      {"chdir", array.folder},
                      {"output", "%x-%A_%a.out"}});
  std::erase_if(
      options, [&](const BatchOption& option) { return array.options.sets(option.name); });
  std::ranges::copy_if(
      array.options.sbatch, std::back_inserter(options),
      [](const BatchOption& option) { return option.value != ""; });

  const auto kept = [](const std::string& line) { return "#   " + line + "\n"; };
  const auto option_line = [](const BatchOption& one) { return "#SBATCH " + one.line() + "\n"; };
  const auto kept_lines = mapped(array.options.lines(), kept);
  return formatted(
      kTemplate, fmt::arg("count", runs.size()), fmt::arg("name", array.name),
      fmt::arg("each", per_job == 1 ? "each a" : formatted("{} in each", per_job)),
      fmt::arg("command", command),
      fmt::arg(
          "submit",
          has_rounds ? "`bash FILE [SBATCH OPTIONS]` submits all rounds" : "Submit it with sbatch"),
      fmt::arg(
          "tasks", alike ? formatted("Each Slurm task is a worker; tasks per point: {}.", workers)
                         : formatted(
                               "The points have {} to {} workers, so each is one task\n# "
                               "whose workers are its threads, on one node.",
                               least.options.workers, workers)),
      fmt::arg(
          "needs", needs.minutes > 0 && !array.options.sets("time")
                       ? formatted("# The time limit is {}.\n", needs.minutes_from)
                       : ""),
      fmt::arg("kept", kept_lines.empty() ? "" : kKeptHead + join(kept_lines, "")),
      fmt::arg("lines", join(mapped(options, option_line), "")),
      fmt::arg("root", quoted(array.root)),
      fmt::arg("program", quoted(array.options.launcher.value_or(array.program))),
      fmt::arg(
          "points", has_rounds
                        ? join(mapped(array.rounds, [](auto n) { return std::to_string(n); }), " ")
                        : std::to_string(runs.size())),
      fmt::arg(
          "rounds", has_rounds
                        ? formatted(
                              kRounds, fmt::arg("last", join(mapped(array.rounds, last), " ")),
                              fmt::arg("at_once", at_once))
                        : ""),
      fmt::arg("per_job", per_job), fmt::arg("round", has_rounds ? "round - 1" : "0"),
      fmt::arg("round_option", has_rounds ? " --round \"$round\"" : ""));
}

bool is_batch_file(const std::string& begin) {
  return begin.starts_with("#!/usr/bin/env bash\n# The ") &&
         begin.find(kWrittenBy) != std::string::npos;
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
