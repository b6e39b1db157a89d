// abtrain train: one run, from its configuration to its report.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/log.h"
#include "base/signals.h"
#include "comm/launch.h"
#include "configuration.h"
#include "hooks.h"
#include "run/plan.h"
#include "run/processes.h"
#include "run/resume.h"
#include "run/session.h"

namespace abtrain::app {

namespace {

struct TrainArgs {
  ConfigArgs config;
  comm::LaunchFlags launch;
  std::string resume;  // none | auto | a folder; empty: auto in a Slurm job
  bool dry_run = false;
};

int run_train(const TrainArgs& args) {
  const StopSignals signals;  // from the first moment to the last
  const comm::Launch launch = comm::find_launch(args.launch);
  Log log(launch.rank == 0 ? LogLevel::Info : LogLevel::Quiet);
  run::SessionOptions session;
  session.resume = args.resume.empty() ? run::default_resume() : args.resume;
  session.hooks = train_hooks();
  const auto print = [](const run::SessionResult& result) {
    std::cout << result.table << std::flush;
  };
  if (launch.size == 1) {
    print(run::train(read_configuration(args.config), session, log));
    return 0;
  }
  log.info(launch.text());
  run::Processes processes(launch, log);
  session.processes = &processes;
  processes.run([&] {
    run::RunOptions options;
    processes.all_or_none(
        [&] { options = read_configuration(args.config, launch.size); });
    print(run::train(options, session, log));
    return 0;
  });
}

void add_train_options(CLI::App& command, TrainArgs& args) {
  add_config_options(command, args.config);
  command
      .add_option(
          "--resume",
          args.resume,
          "auto: go on from the run's newest checkpoint, if there is one; "
          "none; or "
          "the folder of a run or checkpoint (default: auto in a Slurm job)")
      ->type_name("auto|none|FOLDER");
  constexpr const char* kProcesses =
      "Processes (else mpirun, srun, torchrun tell)";
  command
      .add_option(
          "--rank", args.launch.rank, "which process this one is, from 0")
      ->group(kProcesses);
  command
      .add_option("--processes", args.launch.processes, "how many there are")
      ->group(kProcesses);
  command
      .add_option(
          "--local-rank", args.launch.local_rank, "which one on this host")
      ->group(kProcesses);
  command
      .add_option(
          "--local-processes",
          args.launch.local_processes,
          "how many there are on this host")
      ->group(kProcesses);
  command
      .add_option(
          "--meet-at", args.launch.meet_at, "an address of process 0's host")
      ->type_name("HOST:PORT")
      ->group(kProcesses);
  command.add_flag(
      "--dry-run", args.dry_run, "only print the plan, as `plan` does");
}

}  // namespace

Command add_train(CLI::App& parser) {
  auto args = std::make_shared<TrainArgs>();
  CLI::App& command = *parser.add_subcommand("train", "train a model");
  add_train_options(command, *args);
  return {&command, [args] {
            if (args->dry_run) {
              std::cout << run::plan_text(read_configuration(args->config))
                        << std::flush;
              return 0;
            }
            return run_train(*args);
          }};
}

}  // namespace abtrain::app
