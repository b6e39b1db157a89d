// The options of a sweep's batch file. The file keeps them in comments, one per line, so that the
// next batch file of the sweep starts from them:
//   #   --points-per-job=4
//   #   --sbatch=--partition=gpu
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::sweep {

struct BatchOption {
  std::string name;                       // without dashes; the long form for common letters
  std::optional<std::string> value = {};  // nullopt: a flag; "": the option is left out

  // The text after "#SBATCH ": `--comment="two words"`. Slurm reads these lines, not the shell.
  std::string line() const;
  // The batch file's own option that this one replaces, such as gpus-per-node for gres=gpu:4; else
  // the option's name. Of options with the same theme, Slurm takes only one.
  std::string theme() const;
};
// Reads "--mem=4G", "--mem 4G", "-p gpu" or "--exclusive". Throws Error(Usage) for anything but one
// option, and for --array, which the batch file itself must set.
BatchOption read_batch_option(const std::string& text);

struct SlurmOptions {
  std::optional<std::int64_t> jobs = {};            // number of jobs at the same time
  std::optional<std::int64_t> points_per_job = {};  // number of points, one after another
  std::optional<std::string> launcher = {};         // words to use instead of the program
  std::vector<BatchOption> sbatch = {};

  // True if an option in `sbatch` replaces the batch file's option of this name.
  bool sets(const std::string& name) const;
  // Returns one line per option: "--jobs=2", "--sbatch=--mem=4G".
  std::vector<std::string> lines() const;
};

// The options kept in the text of a batch file; none if it is not a batch file of this sweep.
// Throws Error(Usage), naming `path`, if a kept line was changed to something invalid.
SlurmOptions kept_options(
    const std::string& text, const std::string& sweep, const std::string& path);
// Returns `given`, with the options that it lacks taken from `kept`.
SlurmOptions completed(SlurmOptions given, const SlurmOptions& kept);

}  // namespace abtrain::sweep
