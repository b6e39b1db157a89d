// abtrain plan: what a configuration will do; trains nothing.
#include "run/plan.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "configuration.h"

namespace abtrain::app {

Command add_plan(CLI::App& parser) {
  auto args = std::make_shared<ConfigArgs>();
  CLI::App& command = *parser.add_subcommand(
      "plan", "print what would be trained and sent; train nothing");
  add_config_options(command, *args);
  return {&command, [args] {
            std::cout << run::plan_text(read_configuration(*args))
                      << std::flush;
            return 0;
          }};
}

}  // namespace abtrain::app
