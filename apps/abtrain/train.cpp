// abtrain train: trains one run, from its configuration to its report.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "config/run_files.h"
#include "configuration.h"
#include "plan/plan.h"
#include "run_folder/checkpoint.h"
#include "train/resume.h"
#include "training.h"

namespace abtrain::app {

namespace {

namespace fs = std::filesystem;

struct TrainArgs {
  ConfigArgs config;
  std::string resume;  // none | auto | a folder; empty: as default_resume() says
  bool overwrite = false;
  bool dry_run = false;
  bool fast_dev_run = false;
};

// Returns the configuration of a run of two steps, with a checkpoint after the first step and an
// evaluation. The run gets its own folder, on the file system that all workers see.
config::RunOptions read_fast_run(const TrainArgs& args, std::int64_t launched, Log& log) {
  ConfigArgs config = args.config;
  for (const char* set :
       {"train.steps=2", "train.seconds=0", "train.log_every=1", "checkpoint.every=1",
        "evaluate.every=0", "branch_from=none"}) {
    config.sets.emplace_back(set);
  }
  config.shortens_all = true;
  config::RunOptions options = read_configuration(config, log, launched);
  options.output = (fs::path(options.output) / (".fast-dev-run-" + options.name)).string();
  return options;
}

// For an option that names a run when no configuration is given: takes the run's configuration and,
// without --output, the folder that contains the run. Returns the run's folder.
fs::path take_configuration(
    const char* wanted, const std::string& given, const std::string& folder, ConfigArgs& config) {
  fs::path run = fs::absolute(folder).lexically_normal();
  run = run.has_filename() ? run : run.parent_path();
  if (fs::is_symlink(run)) {
    run = real_path(run);  // a link, such as "latest", is not the run's name
  }
  if (fs::exists(run / config::kManifest)) {  // RUN/checkpoints/step-...
    run = run.parent_path().parent_path();
  }
  ABT_CHECK(
      fs::exists(run / config::kConfig), MissingInput, "{}, with config.yaml; got '{}'{}", wanted,
      given, fs::exists(run) ? "" : ", which does not exist");
  if (const fs::path near = run.lexically_proximate(fs::current_path());
      fs::path(folder).is_relative() && near.filename() != "." && near.filename() != "..") {
    run = near;  // otherwise, only the whole path has the run's name
  }
  config.config = (run / config::kConfig).string();
  if (config.output.empty()) {
    config.output = run.has_parent_path() ? run.parent_path().string() : ".";
  }
  return run;
}

// `--resume RUN` alone: takes the run's own configuration and folder. A finished run is only
// reported, unless overrides make it longer.
void take_run(TrainArgs& args) {
  const bool is_in_place = args.config.name.empty() && args.config.output.empty();
  const fs::path run = take_configuration(
      "--resume: expected a configuration to train, or the folder of a run", args.resume,
      args.resume, args.config);
  if (args.config.name.empty()) {
    args.config.name = run.filename().string();
  }
  if (is_in_place && args.config.sets.empty() && fs::exists(run / "summary.json")) {
    args.resume = "auto";
  }
}

// `--branch-from RUN[@CHECKPOINT]`: if no configuration is given, takes the run's.
void take_branch(TrainArgs& args) {
  const std::string& from = args.config.branch_from;
  ABT_CHECK(
      args.resume.empty() || args.resume == "auto" || args.resume == "none", Usage,
      "--branch-from starts a new run, and --resume {} continues another one: give one of them",
      args.resume);
  ABT_CHECK(
      !args.fast_dev_run, Usage,
      "--fast-dev-run begins and ends a run of its own: leave out --branch-from");
  if (args.config.config.empty()) {
    ABT_CHECK(
        !args.config.name.empty(), Usage,
        "--branch-from starts a new run: give it a name of its own, as in --name NEW");
    take_configuration(
        "--branch-from: expected RUN or RUN@CHECKPOINT, where RUN is the folder of a run", from,
        run_folder::split_run_name(from).run, args.config);
  }
}

int run_train(TrainArgs& args) {
  if (!args.config.branch_from.empty()) {
    take_branch(args);
  }
  if (args.config.config.empty() && !args.resume.empty() && args.resume != "auto" &&
      args.resume != "none") {
    take_run(args);
  }
  check_given(args.config);
  if (args.dry_run) {
    release_signals();
    Log log;
    print(plan::plan_text(read_configuration(args.config, log)));
    return 0;
  }
  if (args.fast_dev_run) {
    ABT_CHECK(
        args.resume.empty() || args.resume == "none", Usage,
        "--fast-dev-run begins and ends a run of its own: leave out --resume");
    return train_here(
        {.overwrite = true, .leaves_nothing = true},
        [&](std::int64_t launched, Log& log) { return read_fast_run(args, launched, log); });
  }
  return train_here(
      {.resume = args.resume.empty() ? train::default_resume() : args.resume,
       .overwrite = args.overwrite},
      [&](std::int64_t launched, Log& log) {
        return read_configuration(args.config, log, launched);
      });
}

}  // namespace

Command add_train(CLI::App& parser) {
  auto args = std::make_shared<TrainArgs>();
  CLI::App& command = *parser.add_subcommand("train", "train a model");
  add_config_options(command, args->config);
  command
      .add_option(
          "--resume", args->resume,
          "auto: continue from the run's newest checkpoint, if there is one; "
          "none; or the folder of a run or checkpoint, whose configuration is "
          "used where none is named (default: auto in a batch job or step of Slurm, else none)")
      ->type_name("auto|none|FOLDER");
  command
      .add_option(
          "--branch-from", args->config.branch_from,
          "start a new run from a checkpoint of another one, with other values of the learning "
          "rate and the like: RUN for the newest, RUN@best or RUN@step-400; its configuration is "
          "used where none is named")
      ->type_name("RUN");
  command.add_flag(
      "--overwrite", args->overwrite, "start over even if that discards the run in the run folder");
  command.add_flag("--dry-run", args->dry_run, "only print the plan, as `plan` does");
  command.add_flag(
      "--fast-dev-run", args->fast_dev_run,
      "only train two steps, with a checkpoint and an evaluation, and leave "
      "nothing behind: does everything work?");
  command.footer(
      "Examples:\n"
      "  abtrain train fashion_mnist_mlp\n"
      "  abtrain train my.yaml method.name=ddp workers=8 --name my_ddp\n"
      "  abtrain train my.yaml --fast-dev-run      does everything work?\n"
      "  abtrain train --resume runs/my            go on where it stopped\n"
      "  abtrain train --resume runs/my train.epochs=20   make it longer\n"
      "  abtrain train --branch-from runs/my@step-400 optimizer.lr=5e-4 --name my_slow\n"
      "  mpirun -np 4 abtrain train my.yaml        a process per worker\n"
      "The word `train` may be left out.\n");
  return {&command, [args] { return run_train(*args); }, true};
}

}  // namespace abtrain::app
