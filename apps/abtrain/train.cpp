// abtrain train: one run, from its configuration to its report.
#include <iostream>

#include "base/log.h"
#include "commands.h"
#include "configuration.h"
#include "run/session.h"

namespace abtrain::app {

int run_train(const TrainArgs& args) {
  Log log;
  const run::SessionResult result =
      run::train(read_configuration(args.config), log);
  std::cout << result.table << std::flush;
  return 0;
}

}  // namespace abtrain::app
