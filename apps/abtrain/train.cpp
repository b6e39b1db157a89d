// abtrain train: one run, from its configuration to its report.
#include <iostream>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "commands.h"
#include "configuration.h"
#include "run/session.h"

namespace abtrain::app {

namespace {

// Several copies would each train all of it, in one run folder.
void refuse_launchers() {
  for (const char* size :
       {"OMPI_COMM_WORLD_SIZE",
        "PMI_SIZE",
        "SLURM_STEP_NUM_TASKS",
        "WORLD_SIZE"}) {
    const auto processes = env_integer(size);
    ABT_CHECK(
        !processes || *processes <= 1,
        Config,
        "started as ",
        *processes,
        " processes (",
        size,
        "), but in this version the workers of a run are threads of one "
        "process: start it once, with `workers` in the configuration");
  }
}

}  // namespace

int run_train(const TrainArgs& args) {
  refuse_launchers();
  Log log;
  const run::SessionResult result =
      run::train(read_configuration(args.config), log);
  std::cout << result.table << std::flush;
  return 0;
}

}  // namespace abtrain::app
