// abtrain man: prints the manual pages abtrain(1) and abtrain-config(5), made
// from the commands' help, the table of configuration keys and that of exit codes.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/exit_codes.h"
#include "base/options.h"
#include "base/options_apply.h"
#include "base/text.h"
#include "choice_option.h"
#include "commands.h"
#include "config/config.h"

namespace abtrain::app {

namespace {

constexpr const char* kSeries =
    "Its main method is AB-training: every large weight is split by a singular "
    "value decomposition into two low-rank factors, each group of workers "
    "trains one of them, and the groups synchronize from time to time. Data "
    "parallel training with gradient compression, local SGD, DiLoCo and "
    "gradient-based example orders use the same configuration, traffic meter "
    "and clock.\n\nThe keys of a configuration are those of `abtrain-config`(5).";

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
    {"ABTRAIN_SPEED",
     "Speed of the worker that this process is, in any unit, with `balance: auto`."},
    {"OMP_NUM_THREADS",
     "Threads per worker where `train.threads` is 0; without it the cores are "
     "shared evenly."},
    {"NO_COLOR, TERM",
     "With NO_COLOR, or TERM=dumb, standard error gets no colors and no live "
     "line."},
    {"XDG_CACHE_HOME",
     "Where the list of an image folder that cannot be written to is kept; "
     "default ~/.cache."},
    {"SLURM_JOB_ID", "Inside a Slurm job `--resume` is `auto` by default."},
    {"RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
     "Set by torchrun: this process is one of the workers. The variables of "
     "mpirun and srun are understood too."}};

constexpr Row kFiles[] = {
    {"OUTPUT/NAME/config.yaml", "The complete configuration that the run used."},
    {"OUTPUT/NAME/metrics.jsonl", "The events of the run, one JSON object per line."},
    {"OUTPUT/NAME/events.out.tfevents.*", "Its numbers, for TensorBoard."},
    {"OUTPUT/NAME/summary.json", "Accuracy, traffic, times and ranks of the layers."},
    {"OUTPUT/NAME/model.safetensors", "The trained model, factored."},
    {"OUTPUT/NAME/checkpoints/", "The checkpoints from which `--resume` continues."},
    {"OUTPUT/NAME/failure.json", "Why the run failed."},
    {"PREFIX/share/abtrain/configs/",
     "Ready-made configurations, which are found by their names."}};

std::string bold(const std::string& text) {
  return "`" + text + "`";
}

// A line of roff; '`' begins and ends bold. What roff would interpret is escaped;
// dashes and quotes stay ASCII, so that commands can be copied from the page.
std::string roff(const std::string& text) {
  std::string out;
  char font = 'R';
  for (const char c : text) {
    if (c == '`') {
      font = font == 'R' ? 'B' : 'R';
      out += formatted("\\f{}", font);
    } else {
      out += c == '\\'   ? "\\e"
             : c == '-'  ? "\\-"
             : c == '\'' ? "\\(aq"
             : c == '^'  ? "\\(ha"
             : c == '~'  ? "\\(ti"
                         : std::string(1, c);
    }
  }
  // A leading dot would begin a roff request.
  return (out.starts_with('.') ? "\\&" : "") + out + "\n";
}

// Lines of roff; an empty one begins a new paragraph.
std::string paragraphs(const std::string& text) {
  std::string out;
  const std::string lines = text.substr(0, text.find_last_not_of('\n') + 1);
  for (const std::string& line : split_text(lines, '\n')) {
    out += line.empty() ? ".PP\n" : roff(line);
  }
  return out;
}

// A page in roff, with the macros of man(7).
struct Page {
  std::string roff_text;

  Page(const std::string& name, int section)
      : roff_text(formatted(
            ".TH {} {} \"\" \"{}\" \"abtrain manual\"\n.nh\n", name, section, version_text())) {}

  // `.SH` begins a section, `.SS` a part of one.
  void heading(const std::string& macro, const std::string& title, const std::string& text = "") {
    roff_text += macro + " " + roff(title);
    roff_text += text.empty() ? "" : paragraphs(text);
  }
  // Lines that are kept as they are.
  void lines(const std::string& text) {
    roff_text += ".nf\n" + paragraphs(text) + ".fi\n";
  }
  // A term, with its meaning indented below.
  void item(const std::string& term, const std::string& meaning) {
    roff_text += ".TP\n" + roff(term) + roff(meaning);
  }
};

void rows(Page& page, const std::string& title, const auto& table) {
  page.heading(".SH", title);
  for (const Row& row : table) {
    page.item(bold(row.name), row.meaning);
  }
}

std::string program_page(const CLI::App& program) {
  Page page("ABTRAIN", 1);
  const std::string footer = program.get_footer();
  page.heading(".SH", "NAME", "abtrain - train neural networks with little communication");
  page.heading(
      ".SH", "SYNOPSIS",
      "`abtrain` COMMAND [OPTION...]\n\n`abtrain` CONFIG [a.b=VALUE...] [OPTION...]");
  page.heading(".SH", "DESCRIPTION", program.get_description() + "\n\n" + kSeries);
  page.heading(".SH", "COMMANDS");
  for (const CLI::App* command : program.get_subcommands({})) {
    page.heading(".SS", "abtrain " + command->get_name());
    page.lines(command->help("abtrain"));
  }
  page.heading(".SH", "OPTIONS", "Options of the program and of every command:");
  for (const CLI::Option* option : program.get_options()) {
    page.item(bold(option->get_name(false, /*all_options=*/true)), option->get_description());
  }
  page.heading(".SH", "EXIT STATUS");
  for (const ExitCode& exit : kExitCodes) {
    page.item(bold(std::to_string(exit.code)), exit.meaning);
  }
  rows(page, "ENVIRONMENT", kEnvironment);
  rows(page, "FILES", kFiles);
  page.heading(".SH", "EXAMPLES");
  page.lines(footer.substr(footer.find('\n') + 1));  // without its title
  page.heading(".SH", "SEE ALSO", "`abtrain-config`(5), `mpirun`(1), `srun`(1)");
  return page.roff_text;
}

std::string config_page() {
  Page page("ABTRAIN-CONFIG", 5);
  page.heading(".SH", "NAME", "abtrain-config - configuration of a run of abtrain");
  page.heading(".SH", "DESCRIPTION", config::config_introduction());
  config::RunOptions defaults;
  const Fields fields = config::fields_of(defaults);
  page.heading(".SH", "KEYS");
  page.heading(".SS", "The run");
  const auto item = [&](const std::string& name, const Field& field) {
    page.item(
        bold(name) + " = " + field.print(),
        formatted("{}{}{}", field.help, field.help.empty() ? "" : "; ", field.wanted));
  };
  for (const Field& field : fields.list()) {
    if (field.is_section()) {
      page.heading(".SS", field.key + ": " + field.help);
      each_key(field.section, item, field.key);
    } else {
      item(field.key, field);
    }
  }
  page.heading(".SH", "SEE ALSO", "`abtrain`(1)");
  return page.roff_text;
}

}  // namespace

Command add_man(CLI::App& parser) {
  auto name = std::make_shared<std::string>("abtrain");
  CLI::App& command =
      *parser.add_subcommand("man", "print a manual page, such as for `abtrain man | man -l -`");
  one_of(
      command.add_option("page", *name, "which page (default abtrain)"),
      {"abtrain", "abtrain-config"});
  return {&command, [name, &parser] {
            std::cout << (*name == "abtrain" ? program_page(parser) : config_page()) << std::flush;
            return 0;
          }};
}

}  // namespace abtrain::app
