#include "configuration.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "choice_option.h"
#include "config/config.h"
#include "config/override.h"
#include "config/run_files.h"
#include "run_folder/checkpoint.h"
#include "train/checkpoint_model.h"

namespace abtrain::app {

namespace {

namespace fs = std::filesystem;

// Sorts the words of the command line into the configuration and its overrides. They may stand in
// any order, mixed with --set; the last override of a key counts.
void take_words(const CLI::App& command, ConfigArgs& args) {
  args.sets.clear();
  std::map<const CLI::Option*, std::size_t> taken;
  for (const CLI::Option* option : command.parse_order()) {
    const bool is_set = option->check_lname("set");
    if (!is_set && !option->get_positional()) {
      continue;
    }
    const std::string& word = option->results()[taken[option]++];
    if (is_set || is_override(word)) {
      args.sets.push_back(word);
      continue;
    }
    ABT_CHECK(
        args.config.empty(), Usage,
        "{}: expected one configuration, got '{}' and '{}' (an override is "
        "written as KEY=VALUE)",
        command.get_name(), args.config, word);
    args.config = word;
  }
}

}  // namespace

std::vector<std::string> config_places() {
  return config::config_folders(program_path());
}

void check_given(const ConfigArgs& args) {
  ABT_CHECK(
      !args.config.empty(), Usage,
      "expected a configuration, the path of a YAML file or a name in the "
      "configs folder, as in `abtrain fashion_mnist_mlp`");
}

bool is_override(const std::string& word) {
  const std::size_t equals = word.find('=');
  return equals != std::string::npos && equals > 0 && word.front() != '-' &&
         word.find('/') > equals;
}

bool names_configuration(const std::string& word) {
  if (word.empty() || is_override(word)) {
    return false;
  }
  if (word.find('/') != std::string::npos || word.ends_with(".yaml") || word.ends_with(".yml")) {
    return true;
  }
  const auto is_in = [&](const std::string& folder) {
    std::error_code none;
    return fs::is_regular_file(fs::path(folder) / (word + ".yaml"), none);
  };
  return is_in("") || std::ranges::any_of(config_places(), is_in);
}

std::vector<std::string> configuration_names() {
  constexpr int kMaxDepth = 4;  // links may form cycles
  constexpr auto kOptions = fs::directory_options::follow_directory_symlink |
                            fs::directory_options::skip_permission_denied;
  std::vector<std::string> names;
  for (const std::string& folder : config_places()) {
    std::error_code error;
    fs::recursive_directory_iterator file(folder, kOptions, error);
    for (; file != end(file); file.increment(error)) {
      if (file.depth() == kMaxDepth) {
        file.disable_recursion_pending();
      }
      if (file->path().extension() == ".yaml") {
        fs::path name = file->path().lexically_relative(folder);
        names.push_back(name.replace_extension().string());
      }
    }
  }
  return names;
}

void add_config_options(CLI::App& command, ConfigArgs& args) {
  command.add_option("configuration")
      ->description("a path, or a name in the configs folder")
      ->type_name("CONFIG");
  command.add_option("overrides")
      ->description("keys of the configuration and their values")
      ->type_name("a.b=VALUE")
      ->expected(CLI::detail::expected_max_vector_size);
  command.add_option("-c,--config", args.config, "the configuration, as an option")
      ->type_name("FILE");
  add_repeated(
      command, "--set", args.sets, "a.b=VALUE", "an override, as an option; may be repeated");
  command.final_callback([&command, &args] { take_words(command, args); });
  command.add_option("--name", args.name, "name of the run and of its folder")->type_name("NAME");
  command.add_option("--output", args.output, "folder in which the run folder is created")
      ->type_name("FOLDER");
}

void add_run_options(CLI::App& command, weights::RunModel& model) {
  command
      .add_option(
          "run", model.folder,
          "a run folder, such as runs/my, or one of its checkpoints: runs/my@best, @last, "
          "@step-400; or a model file that says which network it holds")
      ->required()
      ->type_name("RUN");
  command
      .add_option(
          "--model", model.file,
          "the model: a file of the run, or a path (default model.safetensors)")
      ->type_name("FILE");
}

void add_dtype_option(CLI::App& command, std::string& dtype, const char* what) {
  one_of(command.add_option("--dtype", dtype, what), {"fp32", "fp16", "bf16"});
}

void add_force(CLI::App& command, bool& force) {
  command.add_flag("--force", force, "replace an existing file even if it is of another kind");
}

bool names_file(const std::string& path) {
  return !path.empty() && !is_standard_output(path);
}

void check_output(const std::string& path, const OutputKind& kind, bool force) {
  ABT_CHECK(names_file(path) || !force, Usage, "--force goes with {} FILE", kind.option);
  if (names_file(path)) {
    check_replaceable(path, kind, force);
  }
}

config::RunOptions read_run_configuration(
    const std::string& folder, const std::vector<std::string>& sets) {
  const std::string config = folder + "/config.yaml";
  ABT_CHECK(
      fs::exists(config), MissingInput,
      "{}: expected a run folder with config.yaml and model.safetensors{}", folder,
      fs::exists(folder) ? "" : "; it does not exist");
  return config::read_config(config, sets);
}

namespace {

// Uses a model file in place of a run folder, if the file says which network it holds.
ChosenRun choose_file(weights::RunModel& model, const std::vector<std::string>& sets) {
  const std::string path = model.folder;
  ABT_CHECK(model.file.empty(), Usage, "--model: '{}' is a model already", path);
  const weights::About about = weights::about_of(path);
  const auto entry = about.find(weights::kConfigEntry);
  const bool is_program = path.ends_with(".pt2");
  ABT_CHECK(
      is_program || entry != about.end(), Usage,
      "{} does not say which network it holds; expected a run folder, with --model {}", path, path);
  auto made = std::make_unique<TemporaryFolder>(make_temporary_folder());
  ABT_CHECK(
      is_program || !about.contains(weights::kBaseEntry), Usage,
      "{} holds only what a run has trained, and not the base that it began with; expected the "
      "run's folder",
      path);
  const bool says_data =
      entry != about.end() || std::ranges::any_of(sets, [](const std::string& set) {
        return set.starts_with("data.name=") || set.starts_with("data=");
      });
  ABT_CHECK(
      says_data, Usage, "{} does not say which data it takes; expected --set data.name=NAME", path);
  config::ConfigContext context;
  const auto last = [&](const char* key, const std::string& value) {
    context.last.push_back(config::literal_override(key, value, {path, 0, 0, ""}));
  };
  last("workers", "1");
  last("method.name", "ddp");
  if (is_program) {
    last("model.name", "exported");
    last("model.file", fs::absolute(path).string());
  }
  const std::string config = made->path() + "/" + config::kConfig;
  atomic_write(config, entry == about.end() ? "name: model\n" : entry->second);
  model = {made->path(), fs::absolute(path).string(), path};
  return {config::read_config(config, sets, context), std::move(made)};
}

}  // namespace

ChosenRun choose_model(weights::RunModel& model, const std::vector<std::string>& sets) {
  const std::string run = model.folder;
  if (fs::is_regular_file(run)) {
    return choose_file(model, sets);
  }
  const auto [folder, name] = run_folder::split_run_name(run);
  if (name.empty()) {
    return {read_run_configuration(run, sets)};
  }
  ABT_CHECK(model.file.empty(), Usage, "--model: '{}' names a model already", run);
  read_run_configuration(folder);  // throws if it is not a run
  const auto checkpoint = run_folder::named_checkpoint(folder, name);
  ChosenRun chosen{
      config::read_config(checkpoint.folder + "/" + config::kConfig, sets),
      std::make_unique<TemporaryFolder>(make_temporary_folder())};
  model = {folder, chosen.made->path() + "/model.safetensors", run};
  Log log(LogLevel::Warning);
  train::save_model_of(checkpoint, chosen.options, model.file, log);
  return chosen;
}

config::RunOptions read_configuration(const ConfigArgs& args, Log& log, std::int64_t launched) {
  std::vector<std::string> notes;
  config::ConfigContext context{
      .folders = config_places(),
      .launched = launched,
      .shortens_all = args.shortens_all,
      .notes = &notes,
      .fifo = Fifo::Wait};
  const auto take = [&](const char* key, const char* option, const std::string& text) {
    if (!text.empty()) {
      context.last.push_back(
          config::literal_override(key, text, {formatted("{} {}", option, text), 0, 0, ""}));
    }
  };
  take("name", "--name", args.name);
  take("output", "--output", args.output);
  take("branch_from", "--branch-from", args.branch_from);
  config::RunOptions options = config::read_config(args.config, args.sets, context);
  for (const std::string& note : notes) {
    log.info("{}", note);
  }
  return options;
}

}  // namespace abtrain::app
