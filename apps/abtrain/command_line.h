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
// FOLDER and RUN stand for paths, CONFIG for a configuration, a.b=... for its
// keys.
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
};

struct CommandInfo {
  std::string name;  // "train"; of the program itself "abtrain"
  std::string help;
  std::vector<OptionInfo> options;      // those that begin with a dash
  std::vector<OptionInfo> positionals;  // in their order
  std::vector<CommandInfo> commands;    // of the program
  std::string examples = {};            // a line each; may be empty
};

CommandInfo describe_parser(const CLI::App& parser);

}  // namespace abtrain::app
