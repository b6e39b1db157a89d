#include "sweep/slurm_script.h"

#include <algorithm>
#include <filesystem>

#include "base/env.h"
#include "base/error.h"

namespace abtrain::sweep {

namespace {

namespace fs = std::filesystem;

// As one word of a shell.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "/._-+=,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  std::string out = "'";
  for (const char c : word) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

// A name of a job, and the begin of a file's name, as #SBATCH takes it.
std::string job_name(std::string name) {
  std::ranges::replace_if(
      name,
      [](char c) {
        return std::string_view(" '\"\\%").find(c) != std::string_view::npos;
      },
      '_');
  return name;
}

// #SBATCH lines are read by Slurm, not by the shell.
std::string option_value(const std::string& value) {
  return value.find_first_of(" '\"#") == std::string::npos
             ? value
             : "\"" + value + "\"";
}

}  // namespace

std::string slurm_script(
    const SlurmArray& array,
    const std::vector<PointRun>& runs) {
  const auto [least, most] = std::ranges::minmax(
      runs, {}, [](const PointRun& run) { return run.options.workers; });
  const std::int64_t fewest = least.options.workers;
  const std::int64_t workers = most.options.workers;
  const bool alike = fewest == workers;
  std::vector<std::string> words{"sweep"};
  for (const std::string& word : array.arguments) {
    words.push_back(quoted(word));
  }
  const std::string command = join(words, " ");
  std::string shown = command;  // in a comment, so on one line
  std::ranges::replace(shown, '\n', ' ');
  const std::string throttle = array.at_once > 0 ? str("%", array.at_once) : "";
  std::string out = str(
      "#!/usr/bin/env bash\n"
      "# The ",
      runs.size(),
      " points of the sweep ",
      array.name,
      ", a job of the array each, as written by\n"
      "#   abtrain ",
      shown,
      " --emit-slurm\n"
      "# Submit it with sbatch, and again to finish what is missing: what is "
      "done ends at\n"
      "# once. Whatever stands below can be given to sbatch as well. More: "
      "slurm/README.md\n");
  out += alike ? str("# A task of Slurm is a worker: ", workers, " of them.\n")
               : str("# The points have ",
                     fewest,
                     " to ",
                     workers,
                     " workers, so each is one task whose workers are threads "
                     "of it,\n# on one node.\n");
  out +=
      str("##SBATCH --account=ACCOUNT\n"
          "##SBATCH --partition=PARTITION\n"
          "#SBATCH --job-name=",
          job_name(array.name),
          "\n#SBATCH --array=0-",
          runs.size() - 1,
          throttle,
          "\n#SBATCH --nodes=1\n#SBATCH --ntasks=",
          alike ? workers : 1,
          "\n#SBATCH --cpus-per-task=",
          alike ? 1 : workers,
          "\n##SBATCH --gpus-per-node=",
          workers,
          "\n#SBATCH --time=24:00:00\n"
          "#SBATCH --signal=USR1@120\n"
          "#SBATCH --requeue\n"
          "#SBATCH --open-mode=append\n"
          "#SBATCH --chdir=",
          option_value(array.folder),
          "\n#SBATCH --output=%x-%A_%a.out\n\n"
          "root=",
          quoted(array.root),
          "\nABTRAIN=${ABTRAIN:-",
          quoted(array.program),
          "}\n"
          "source \"$root/slurm/job.sh\"\n"
          "run_abtrain ",
          command,
          " --task \"${SLURM_ARRAY_TASK_ID:?this is an array: sbatch "
          "--array=0-",
          runs.size() - 1,
          "}\"\n");
  return out;
}

std::string slurm_root(const std::string& program) {
  const fs::path place = fs::path(program).parent_path();
  std::vector<std::string> roots{
      (place.parent_path() / "share/abtrain").string(),
      place.parent_path().parent_path().string()};
  if (const auto named = env("ABTRAIN_ROOT")) {
    roots = {*named};
  }
  for (const std::string& root : roots) {
    if (fs::exists(root + "/slurm/job.sh")) {
      return fs::absolute(root).lexically_normal().string();
    }
  }
  throw Error(
      ErrorKind::MissingInput,
      str("the batch files' slurm/job.sh was not found in ",
          join(roots, ", "),
          "; name the folder of abtrain in ABTRAIN_ROOT"));
}

}  // namespace abtrain::sweep
