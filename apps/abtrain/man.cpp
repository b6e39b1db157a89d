// abtrain man: prints the manual pages abtrain(1) and abtrain-config(5), made
// from the parser, the table of configuration keys and the table of exit codes.
#include <CLI/CLI.hpp>
#include <cctype>
#include <iostream>
#include <memory>

#include "base/exit_codes.h"
#include "base/options.h"
#include "base/options_apply.h"
#include "command_line.h"
#include "commands.h"
#include "config/config.h"
#include "roff.h"

namespace abtrain::app {

namespace {

constexpr const char* kOptions = "Options";  // CLI11's default group
constexpr const char* kManual = "abtrain manual";

constexpr const char* kSeries =
    "Its main method is AB-training: every large weight is split by a singular "
    "value decomposition into two low-rank factors, each group of workers "
    "trains one of them, and the groups synchronize from time to time. Data "
    "parallel training with gradient compression, local SGD, DiLoCo and "
    "gradient-based example orders use the same configuration, traffic meter "
    "and clock.";

struct Row {
  const char* name;
  const char* meaning;
};

constexpr Row kEnvironment[] = {
    {"ABTRAIN_CONFIGS",
     "Colon-separated folders that are searched for configurations before "
     "./configs and those beside the program."},
    {"ABTRAIN_DATA", "Folder of the data sets, where `data.root` is `auto`."},
    {"ABTRAIN_SECRET, ABTRAIN_SECRET_FILE",
     "A secret of at least 16 bytes, or a file of mode 0600 that holds it. The "
     "processes of a run prove to each other that they know it."},
    {"OMP_NUM_THREADS",
     "Threads per worker where `train.threads` is 0; without it the cores are "
     "shared evenly."},
    {"NO_COLOR, TERM",
     "With NO_COLOR, or TERM=dumb, standard error gets no colours and no live "
     "line."},
    {"XDG_CACHE_HOME",
     "Where the list of an image folder that cannot be written to is kept; "
     "default ~/.cache."},
    {"SLURM_JOB_ID", "Inside a Slurm job `--resume` is `auto` by default."},
    {"RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
     "Set by torchrun: this process is one of the workers. The variables of "
     "mpirun and srun are understood too."}};

constexpr Row kFiles[] = {
    {"OUTPUT/NAME/config.yaml",
     "The complete configuration that the run used."},
    {"OUTPUT/NAME/metrics.jsonl",
     "The events of the run, one JSON object per line."},
    {"OUTPUT/NAME/events.out.tfevents.*", "The same for TensorBoard."},
    {"OUTPUT/NAME/summary.json",
     "Accuracy, traffic, times and ranks of the layers."},
    {"OUTPUT/NAME/model.safetensors", "The trained model, factored."},
    {"OUTPUT/NAME/checkpoints/",
     "The checkpoints from which `--resume` continues."},
    {"OUTPUT/NAME/failure.json", "Why the run failed."},
    {"PREFIX/share/abtrain/configs/",
     "Ready-made configurations, which `--config` finds by name."}};

void rows(ManPage& page, const std::string& title, const auto& table) {
  page.heading(title);
  for (const Row& row : table) {
    page.item(bold(row.name), row.meaning);
  }
}

std::string term_of(const OptionInfo& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back(bold(name));
  }
  const std::string term = join(names, ", ");
  if (option.value.empty()) {
    return term;
  }
  const std::string value =
      italic(option.value) +
      (option.is_positional() && option.repeats ? "..." : "");
  return term.empty() ? value : term + " " + value;
}

std::string text_of(const OptionInfo& option) {
  std::string text = option.help;
  if (!option.choices.empty() && option.value.find('|') == std::string::npos) {
    text += ": " + join(option.choices, ", ");
  }
  return text + (option.required ? " (required)" : "");
}

std::string sentence(std::string text) {
  text.front() =
      static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + ".";
}

void command_part(ManPage& page, const CommandInfo& command) {
  std::string usage = "abtrain " + command.name();
  for (const OptionInfo* option : positionals_of(command)) {
    const std::string value = option->value + (option->repeats ? "..." : "");
    usage += " " + (option->required ? value : "[" + value + "]");
  }
  page.subheading(usage).text(sentence(command.help));
  std::string group = kOptions;
  for (const auto& options : {positionals_of(command), flags_of(command)}) {
    for (const OptionInfo* option : options) {
      if (!option->is_positional() && option->names.back() == "--help") {
        continue;
      }
      if (!option->is_positional() && option->group != group) {
        group = option->group;
        page.text(group == kOptions ? "Other options:" : group + ":");
      }
      page.item(term_of(*option), text_of(*option));
    }
  }
}

std::string program_page(const CommandInfo& program) {
  ManPage page("ABTRAIN", 1, version_text(), kManual);
  page.heading("NAME").text(
      "abtrain - train neural networks with little communication");
  page.heading("SYNOPSIS")
      .text(
          bold("abtrain") + " " + italic("COMMAND") + " [" + italic("OPTION") +
          "...]\n\n" + bold("abtrain") + " " + bold("--config") + " " +
          italic("FILE") + " [" + italic("OPTION") + "...]");
  page.heading("DESCRIPTION").text(program.help + "\n\n" + kSeries);
  page.text(
      "The keys of a configuration are those of " + bold("abtrain-config") +
      "(5).");
  page.heading("COMMANDS");
  for (const CommandInfo* command : all_commands(program)) {
    if (command->commands.empty()) {
      command_part(page, *command);
    }
  }
  page.heading("OPTIONS").text("Options of the program and of every command:");
  for (const OptionInfo* option : flags_of(program)) {
    page.item(term_of(*option), text_of(*option));
  }
  page.heading("EXIT STATUS");
  for (const ExitCode& exit : kExitCodes) {
    page.item(bold(std::to_string(exit.code)), exit.meaning);
  }
  rows(page, "ENVIRONMENT", kEnvironment);
  rows(page, "FILES", kFiles);
  const std::string examples = program.footer;
  page.heading("EXAMPLES")
      .literal(examples.substr(examples.find('\n') + 1));  // not the heading
  page.heading("SEE ALSO")
      .text(
          bold("abtrain-config") + "(5), " + bold("mpirun") + "(1), " +
          bold("srun") + "(1)");
  return page.page();
}

std::string config_page() {
  ManPage page("ABTRAIN-CONFIG", 5, version_text(), kManual);
  page.heading("NAME").text(
      "abtrain-config - configuration of a run of abtrain");
  page.heading("DESCRIPTION").text(config::config_introduction());
  config::RunOptions defaults;
  const Fields fields = config::fields_of(defaults);
  const auto item = [&](const std::string& name, const Field& field) {
    page.item(
        bold(name) + " = " + field.print(),
        str(field.help, field.help.empty() ? "" : "; ", field.wanted));
  };
  page.heading("KEYS").subheading("The run");
  for (const Field& field : fields.list()) {
    if (!field.is_section()) {
      item(field.key, field);
    }
  }
  for (const Field& field : fields.list()) {
    if (field.is_section()) {
      page.subheading(field.key + ": " + field.help);
      each_key(field.section, item, field.key);
    }
  }
  page.heading("SEE ALSO").text(bold("abtrain") + "(1)");
  return page.page();
}

}  // namespace

Command add_man(CLI::App& parser) {
  auto name = std::make_shared<std::string>("abtrain");
  CLI::App& command = *parser.add_subcommand(
      "man", "print a manual page, such as for `abtrain man | man -l -`");
  command.add_option("page", *name, "which page (default abtrain)")
      ->check(
          CLI::IsMember(std::vector<std::string>{"abtrain", "abtrain-config"}))
      ->type_name("PAGE");
  return {&command, [name, &parser] {
            std::cout << (*name == "abtrain"
                              ? program_page(describe_parser(parser))
                              : config_page())
                      << std::flush;
            return 0;
          }};
}

}  // namespace abtrain::app
