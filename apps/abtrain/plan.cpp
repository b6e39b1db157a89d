// abtrain plan: what a configuration will do; trains nothing.
#include "run/plan.h"

#include <iostream>

#include "commands.h"
#include "configuration.h"

namespace abtrain::app {

int run_plan(const PlanArgs& args) {
  std::cout << run::plan_text(read_configuration(args.config)) << std::flush;
  return 0;
}

}  // namespace abtrain::app
