// Reads the configuration that a command line names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/output.h"
#include "commands.h"
#include "config/run_options.h"
#include "temporary_folder.h"
#include "weights/model_file.h"

namespace abtrain::app {

// The choice of a configuration: the file, then each override, in order.
struct ConfigArgs {
  std::string config;             // path, or a name in the search folders
  std::vector<std::string> sets;  // "a.b=value", with or without `--set`
  std::string name;               // empty: the configuration's own
  std::string output;             // empty: the configuration's own
  std::string branch_from;        // empty: the configuration's own
  bool shortens_all = false;      // see config/config.h
};

// Adds [CONFIG] [a.b=VALUE...], --config, --set, --name and --output. `args`
// must outlive the parser.
void add_config_options(CLI::App& command, ConfigArgs& args);

// The folders in which configurations are searched by name.
std::vector<std::string> config_places();
// Throws Error(Usage) if no configuration is named.
void check_given(const ConfigArgs& args);

// True if a word of the command line is an override, such as train.steps=20.
bool is_override(const std::string& word);
// True if a word is the path of a YAML file, or a name in the search folders.
bool names_configuration(const std::string& word);
// All names in the search folders, such as compare/ab.
std::vector<std::string> configuration_names();

// Adds RUN, and --model, which chooses one of the run's models.
void add_run_options(CLI::App& command, weights::RunModel& model);

// The run whose model the command line names.
struct ChosenRun {
  config::RunOptions options;                  // the options with which the model was trained
  std::unique_ptr<TemporaryFolder> made = {};  // holds files made for a checkpoint or model file
};
// Completes `model`. Its folder may also name a model file, or a checkpoint such as runs/my@best. A
// checkpoint's model is written to a temporary file that exists as long as the result. `sets`
// override the run's configuration. Throws Usage, MissingInput, DamagedData.
ChosenRun choose_model(weights::RunModel& model, const std::vector<std::string>& sets = {});

// Adds --dtype fp32 | fp16 | bf16. `what` is the help text and says which tensors it applies to.
void add_dtype_option(CLI::App& command, std::string& dtype, const char* what);

// Adds --force, for commands that write a file named by the user.
void add_force(CLI::App& command, bool& force);
// True if the value of an option names a file: neither "" nor standard output.
bool names_file(const std::string& path);
// Call before long work. Throws Error(Usage) if the file must not be replaced (base/output.h), or
// if --force is given without a file.
void check_output(const std::string& path, const OutputKind& kind, bool force);

// Reads config.yaml of a run folder, overridden by `sets`. Throws MissingInput if there is none.
config::RunOptions read_run_configuration(
    const std::string& folder, const std::vector<std::string>& sets = {});

// Reads the configuration that `args` name, with overrides, --name and --output. Logs each value
// that was adapted to the launcher or to train.steps. `launched`: the number of processes that a
// launcher started, which are then the workers; 0: none.
config::RunOptions read_configuration(const ConfigArgs& args, Log& log, std::int64_t launched = 0);

}  // namespace abtrain::app
