#include "configuration.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "config/config.h"

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
  add_sets(
      command,
      args.sets,
      "override one key of the configuration; may be repeated");
  command.add_option("--name", args.name, "name of the run and of its folder")
      ->type_name("NAME");
  command
      .add_option(
          "--output", args.output, "folder in which the run folder is created")
      ->type_name("FOLDER");
}

void add_run_options(
    CLI::App& command,
    std::string& folder,
    std::string& model) {
  command.add_option("run", folder, "a run folder, such as runs/my")
      ->required()
      ->type_name("RUN");
  command
      .add_option(
          "--model",
          model,
          "the model: a file of the run, or a path (default model.safetensors)")
      ->type_name("FILE");
}

void add_dtype_option(CLI::App& command, std::string& dtype, const char* what) {
  command.add_option("--dtype", dtype, what)
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}));
}

void add_force(CLI::App& command, bool& force) {
  command.add_flag(
      "--force",
      force,
      "replace an existing file even if it is of another kind");
}

config::RunOptions read_run_configuration(
    const std::string& folder,
    const std::vector<std::string>& sets) {
  const std::string config = folder + "/config.yaml";
  ABT_CHECK(
      std::filesystem::exists(config),
      MissingInput,
      "{}: expected a run folder with config.yaml and model.safetensors",
      folder);
  return config::read_config(config, sets);
}

config::RunOptions read_configuration(
    const ConfigArgs& args,
    std::int64_t launched) {
  std::vector<std::string> sets = args.sets;
  if (!args.name.empty()) {
    sets.push_back("name=" + args.name);
  }
  if (!args.output.empty()) {
    sets.push_back("output=" + args.output);
  }
  config::ConfigContext context;
  context.launched = launched;
  context.folders = config::config_folders(program_path());
  return config::read_config(args.config, sets, context);
}

}  // namespace abtrain::app
