// Scripts that make shells complete the program's command line. They are made
// from the parser's commands and options and from the configuration's keys, and
// look for configurations where the program does.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"

namespace abtrain::app {

// A key for `--set`, as "train.steps", with the accepted words if limited.
struct KeyInfo {
  std::string name;
  std::string help;
  std::vector<std::string> choices;
};

std::string bash_completion(
    const CommandInfo& program,
    const std::vector<KeyInfo>& keys);
std::string zsh_completion(
    const CommandInfo& program,
    const std::vector<KeyInfo>& keys);
std::string fish_completion(
    const CommandInfo& program,
    const std::vector<KeyInfo>& keys);

// The command that is meant where a command line names none.
constexpr const char* kDefaultCommand = "train";

// The text in single quotes, for sh, bash and zsh.
std::string shell_quoted(const std::string& text);

// `text` with every @NAME@ of `parts` replaced.
struct Part {
  std::string name;
  std::string text;
};
std::string filled(std::string text, const std::vector<Part>& parts);

}  // namespace abtrain::app
