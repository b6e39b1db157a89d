// Reads the configuration that a command line asks for.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "config/run_options.h"

namespace abtrain::app {

// What chooses a configuration: the file, then each `--set`, in order.
struct ConfigArgs {
  std::string config;             // path, or a name in the search folders
  std::vector<std::string> sets;  // "a.b=value"
  std::string name;               // empty: the configuration's own
  std::string output;             // empty: the configuration's own
};

// --config, --set, --name, --output.
void add_config_options(CLI::App& command, ConfigArgs& args);
// --set alone, over what `help` says.
void add_sets(
    CLI::App& command,
    std::vector<std::string>& sets,
    const char* help);

// A run folder, and --model, which of its models.
void add_run_options(
    CLI::App& command,
    std::string& folder,
    std::string& model);

// --dtype fp32 | fp16 | bf16; `what` says of which tensors.
void add_dtype_option(CLI::App& command, std::string& dtype, const char* what);

// --force, for what writes a file that the user names.
void add_force(CLI::App& command, bool& force);

// config.yaml of a run folder, and `sets` over it. Throws MissingInput.
config::RunOptions read_run_configuration(
    const std::string& folder,
    const std::vector<std::string>& sets = {});

// The file or name, then --set, --name and --output.
// `launched`: processes that a launcher started, which are the workers then.
config::RunOptions read_configuration(
    const ConfigArgs& args,
    std::int64_t launched = 0);

}  // namespace abtrain::app
