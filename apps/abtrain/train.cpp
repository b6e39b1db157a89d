// abtrain train: trains one run, from its configuration to its report.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "configuration.h"
#include "plan/plan.h"
#include "train/resume.h"
#include "training.h"

namespace abtrain::app {

namespace {

struct TrainArgs {
  ConfigArgs config;
  comm::LaunchFlags launch;
  std::string resume;  // none | auto | a folder; empty: auto in a Slurm job
  bool overwrite = false;
  bool dry_run = false;
};

int run_train(const TrainArgs& args) {
  return train_here(
      args.launch,
      args.resume.empty() ? train::default_resume() : args.resume,
      args.overwrite,
      [&](std::int64_t launched) {
        return read_configuration(args.config, launched);
      });
}

void add_train_options(CLI::App& command, TrainArgs& args) {
  add_config_options(command, args.config);
  command
      .add_option(
          "--resume",
          args.resume,
          "auto: continue from the run's newest checkpoint, if there is one; "
          "none; or the folder of a run or checkpoint (default: auto in a "
          "Slurm job, else none)")
      ->type_name("auto|none|FOLDER");
  command.add_flag(
      "--overwrite",
      args.overwrite,
      "start over even if the run in the run folder is lost by that");
  add_launch_options(command, args.launch);
  command.add_flag(
      "--dry-run", args.dry_run, "only print the plan, as `plan` does");
}

}  // namespace

Command add_train(CLI::App& parser) {
  auto args = std::make_shared<TrainArgs>();
  CLI::App& command = *parser.add_subcommand("train", "train a model");
  add_train_options(command, *args);
  command.footer(
      "Examples:\n"
      "  abtrain train fashion_mnist_mlp\n"
      "  abtrain train my.yaml method.name=ddp workers=8 --name my_ddp\n"
      "  abtrain train my.yaml --resume auto       go on where it stopped\n"
      "  mpirun -np 4 abtrain train my.yaml        a process per worker\n"
      "The word `train` may be left out.\n");
  return {&command, [args] {
            check_given(args->config);
            if (args->dry_run) {
              std::cout << plan::plan_text(read_configuration(args->config))
                        << std::flush;
              return 0;
            }
            return run_train(*args);
          }};
}

}  // namespace abtrain::app
