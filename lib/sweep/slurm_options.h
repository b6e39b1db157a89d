// What a user asks of a sweep's batch file. The file keeps it in comments, one option per
// line, so that the next batch file of the sweep begins with it:
//   #   --points-per-job=4
//   #   --sbatch=--partition=gpu
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::sweep {

// An option of sbatch.
struct BatchOption {
  std::string name;  // without dashes; the long one of a letter that the batch file uses too
  std::optional<std::string> value = {};  // "": the batch file leaves the option out

  // As after "#SBATCH ": `--comment="two words"`. Slurm reads these lines, not the shell.
  std::string line() const;
  // The name of the option that the batch file would set in its place: gpus-per-node for
  // gres=gpu:4. Of options with the same theme, Slurm takes one.
  std::string theme() const;
};
// Reads "--mem=4G", "--mem 4G", "-p gpu" or "--exclusive". Throws Error(Usage) for what is not
// one option, and for --array, which the batch file itself has to set.
BatchOption read_batch_option(const std::string& text);

struct SlurmOptions {
  std::optional<std::int64_t> jobs = {};            // at a time
  std::optional<std::int64_t> points_per_job = {};  // one after the other
  std::optional<std::string> launcher = {};         // words in place of the program
  std::vector<BatchOption> sbatch = {};

  // Whether an option of sbatch takes the place of the one of this name.
  bool sets(const std::string& name) const;
  // One per option: "--jobs=2", "--sbatch=--mem=4G".
  std::vector<std::string> lines() const;
};

// What the text of a batch file keeps, or nothing where it is not one of the sweep of this name.
// Throws Error(Usage), naming `path`, for a kept line that was changed to what is not valid.
SlurmOptions kept_options(
    const std::string& text, const std::string& sweep, const std::string& path);
// The options of `given`, and those of `kept` that it leaves open.
SlurmOptions completed(SlurmOptions given, const SlurmOptions& kept);

}  // namespace abtrain::sweep
