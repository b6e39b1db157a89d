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
// CLI11 appends the choices that it checks, as in "SHELL:{bash,zsh}".
void read_type(const std::string& type, OptionInfo& option) {
  const std::size_t open = type.find(":{");
  option.value = type.substr(0, open);
  if (open != std::string::npos) {
    const std::size_t begin = open + 2;
    option.choices =
        split_text(type.substr(begin, type.find('}') - begin), ',');
  }
  for (const std::string& part : split_text(option.value, '|')) {
    if (is_word(part)) {
      if (std::ranges::count(option.choices, part) == 0) {
        option.choices.push_back(part);
      }
    } else if (part.starts_with("a.b=")) {
      option.completes = Completes::Key;
    } else if (part == "FOLDER" || part == "RUN") {
      option.completes = Completes::Folder;
    } else if (
        part.find("FILE") != std::string::npos || part == "IN" ||
        part == "OUT" || part.ends_with(".yaml")) {
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
  option.repeats =
      from.get_items_expected_max() > 1 ||
      from.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (from.get_items_expected_max() > 0) {
    read_type(from.get_type_name(), option);
    if (std::ranges::count(option.names, "--config") > 0) {
      option.completes = Completes::Config;
    }
  }
  return option;
}

CommandInfo describe(
    const CLI::App& app,
    const std::vector<std::string>& path) {
  CommandInfo command{path, app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) {  // without a group it is hidden
      command.options.push_back(describe_option(*option));
    }
  }
  for (const CLI::App* below : app.get_subcommands(
           [](const CLI::App* sub) { return !sub->get_group().empty(); })) {
    std::vector<std::string> longer = path;
    longer.push_back(below->get_name());
    command.commands.push_back(describe(*below, longer));
  }
  return command;
}

void collect(const CommandInfo& command, std::vector<const CommandInfo*>& out) {
  out.push_back(&command);
  for (const CommandInfo& below : command.commands) {
    collect(below, out);
  }
}

std::vector<const OptionInfo*> select(
    const CommandInfo& command,
    bool positional) {
  std::vector<const OptionInfo*> out;
  for (const OptionInfo& option : command.options) {
    if (option.is_positional() == positional) {
      out.push_back(&option);
    }
  }
  return out;
}

}  // namespace

std::string CommandInfo::name() const {
  return join(path, " ");
}

CommandInfo describe_parser(const CLI::App& parser) {
  return describe(parser, {});
}

std::vector<const CommandInfo*> all_commands(const CommandInfo& program) {
  std::vector<const CommandInfo*> out;
  collect(program, out);
  return out;
}

std::vector<const OptionInfo*> flags_of(const CommandInfo& command) {
  return select(command, false);
}

std::vector<const OptionInfo*> positionals_of(const CommandInfo& command) {
  return select(command, true);
}

}  // namespace abtrain::app
