// A description of the command line, taken from its parser. Shell completion
// and the manual page are made from it, so that nothing is written twice.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace abtrain::app {

// What completes the value of an option. Its type name tells: FILE, IN, OUT,
// FOLDER and RUN stand for paths, a.b=... for configuration keys.
enum class Completes { Nothing, File, Folder, Config, Key };

struct OptionInfo {
  std::vector<std::string> names;  // "-c", "--config"; empty: a positional
  std::string value;               // "FILE"; empty: a flag
  std::string help;
  std::string group;  // heading in the help text
  Completes completes = Completes::Nothing;
  std::vector<std::string> choices;  // the accepted words, if limited
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
  std::vector<OptionInfo> options;  // positionals in their order
  std::vector<CommandInfo> commands;
  std::string name() const;  // "train"
};

CommandInfo describe_parser(const CLI::App& parser);

// The program itself and all commands below it, parents first.
std::vector<const CommandInfo*> all_commands(const CommandInfo& program);

// The options that begin with a dash, and the positionals.
std::vector<const OptionInfo*> flags_of(const CommandInfo& command);
std::vector<const OptionInfo*> positionals_of(const CommandInfo& command);

}  // namespace abtrain::app
