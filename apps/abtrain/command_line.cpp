#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace abtrain::app {

namespace {

bool is_word(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '_';
  });
}

// Reads a type name: "auto|none|FOLDER" means two accepted words, or a folder.
void read_type(const std::string& type, OptionInfo& option) {
  option.value = type;
  for (const std::string& part : split_text(type, '|')) {
    if (is_word(part)) {
      option.choices.push_back(part);
    } else if (part.starts_with("a.b=")) {
      option.completes = Completes::Key;
    } else if (part == "FOLDER" || part == "RUN") {
      option.completes = Completes::Folder;
    } else if (part == "CONFIG") {
      option.completes = Completes::Config;
    } else if (
        part.find("FILE") != std::string::npos || part == "IN" || part == "OUT" ||
        part.ends_with(".yaml")) {
      option.completes = Completes::File;
    }
  }
}

OptionInfo describe_option(const CLI::Option& from) {
  OptionInfo option;
  for (const std::string& name : from.get_snames()) {
    option.names.push_back("-" + name);
  }
  for (const std::string& name : from.get_lnames()) {
    option.names.push_back("--" + name);
  }
  option.help = from.get_description();
  option.group = from.get_group();
  option.required = from.get_required();
  option.repeats = from.get_items_expected_max() > 1 ||
                   from.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (from.get_items_expected_max() > 0) {
    read_type(from.get_type_name(), option);
    if (std::ranges::count(option.names, "--config") > 0) {
      option.completes = Completes::Config;
    }
  }
  return option;
}

}  // namespace

CommandInfo describe_parser(const CLI::App& parser) {
  CommandInfo command{parser.get_name(), parser.get_description(), {}, {}, {}};
  for (const CLI::Option* option : parser.get_options()) {
    (option->get_positional() ? command.positionals : command.options)
        .push_back(describe_option(*option));
  }
  for (const CLI::App* below : parser.get_subcommands({})) {
    command.commands.push_back(describe_parser(*below));
  }
  const std::string footer = parser.get_footer();
  command.examples = footer.substr(footer.find('\n') + 1);  // without the title
  return command;
}

}  // namespace abtrain::app
