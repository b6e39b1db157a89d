// The batch file that `abtrain sweep --emit-slurm` writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "sweep/halving.h"
#include "sweep/slurm_options.h"

namespace abtrain::app {

struct SlurmArgs {
  // A file name; "" and "-" mean standard output.
  std::optional<std::string> file;
  std::optional<std::int64_t> points_per_job;
  std::optional<std::string> launcher;
  std::vector<std::string> sbatch;
};

// Adds --emit-slurm and the options that go with it. `args` must outlive the parser.
void add_slurm_options(CLI::App& command, SlurmArgs& args);
// Throws Error(Usage) for options without --emit-slurm, and for a file that must not be replaced.
void check_slurm(const SlurmArgs& args, bool force);
// Writes the batch file. `first`: the points; with halving, the points of the first round.
// `arguments`: the arguments after `sweep` that name the sweep in any folder. `jobs`: number of
// jobs that run at the same time.
void emit_slurm(
    const SlurmArgs& args, const sweep::Sweep& whole, const sweep::Sweep& first,
    const std::vector<std::string>& arguments, std::optional<std::int64_t> jobs);

}  // namespace abtrain::app
