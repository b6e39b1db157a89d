// Reads the configuration that a command line asks for.
#pragma once

#include "commands.h"
#include "run/run_options.h"

namespace abtrain::app {

// The file or name, then --set, --name and --output.
run::RunOptions read_configuration(const ConfigArgs& args);

}  // namespace abtrain::app
