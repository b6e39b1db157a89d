// abtrain train: one run, from its configuration to its report.
#include <iostream>

#include "base/log.h"
#include "comm/launch.h"
#include "commands.h"
#include "configuration.h"
#include "hooks.h"
#include "run/processes.h"
#include "run/resume.h"
#include "run/session.h"

namespace abtrain::app {

int run_train(const TrainArgs& args) {
  const comm::Launch launch = comm::find_launch(args.launch);
  Log log(launch.rank == 0 ? LogLevel::Info : LogLevel::Quiet);
  run::SessionOptions session;
  session.resume =
      args.resume.empty() ? run::default_resume() : args.resume;
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

}  // namespace abtrain::app
