#include "configuration.h"

#include <CLI/CLI.hpp>

#include "base/env.h"
#include "run/config.h"

namespace abtrain::app {

void add_sets(
    CLI::App& command,
    std::vector<std::string>& sets,
    const char* help) {
  command.add_option("--set", sets, help)
      ->type_name("a.b=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_config_options(CLI::App& command, ConfigArgs& args) {
  command
      .add_option(
          "-c,--config",
          args.config,
          "the configuration: a path, or a name in the configs folder")
      ->required()
      ->type_name("FILE");
  add_sets(command, args.sets, "override one key of it; may be repeated");
  command.add_option("--name", args.name, "name of the run and its folder")
      ->type_name("NAME");
  command.add_option("--output", args.output, "where run folders are made")
      ->type_name("FOLDER");
}

run::RunOptions read_configuration(
    const ConfigArgs& args,
    std::int64_t launched) {
  std::vector<std::string> sets = args.sets;
  if (!args.name.empty()) {
    sets.push_back("name=" + args.name);
  }
  if (!args.output.empty()) {
    sets.push_back("output=" + args.output);
  }
  run::ConfigContext context;
  context.launched = launched;
  context.folders = run::config_folders(program_path());
  return run::read_config(args.config, sets, context);
}

}  // namespace abtrain::app
