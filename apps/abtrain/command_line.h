// The command line as its parser knows it, for what is made from it: completion
// in shells, the manual page. Nothing of it is written twice.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace abtrain::app {

// What the value of an option can be completed with, by its type name: FILE, IN,
// OUT, FOLDER and RUN stand for paths, a.b=... for keys of the configuration.
enum class Completes { Nothing, File, Folder, Config, Key };

struct OptionInfo {
  std::vector<std::string> names;  // "-c", "--config"; none: a positional
  std::string value;               // "FILE"; empty: a flag
  std::string help;
  std::string group;  // heading in the help
  Completes completes = Completes::Nothing;
  std::vector<std::string> choices;  // words that are taken, where some are
  bool required = false;
  bool repeats = false;
  bool is_positional() const {
    return names.empty();
  }
};

struct CommandInfo {
  std::vector<std::string> path;  // {"train"}; empty: the program
  std::string help;
  std::string footer;
  std::vector<OptionInfo> options;  // then positionals, in their order
  std::vector<CommandInfo> commands;
  std::string name() const;  // "train"
};

CommandInfo describe_parser(const CLI::App& parser);

// The command itself and all below it.
std::vector<const CommandInfo*> all_commands(const CommandInfo& program);

// Options with a dash, and those without.
std::vector<const OptionInfo*> flags_of(const CommandInfo& command);
std::vector<const OptionInfo*> positionals_of(const CommandInfo& command);

}  // namespace abtrain::app
