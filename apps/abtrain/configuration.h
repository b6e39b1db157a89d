// Reads the configuration that a command line asks for.
#pragma once

#include "commands.h"
#include "run/run_options.h"

namespace abtrain::app {

// The file or name, then --set, --name and --output.
// `launched`: processes that a launcher started, which are the workers then.
run::RunOptions read_configuration(
    const ConfigArgs& args, std::int64_t launched = 0);

}  // namespace abtrain::app
