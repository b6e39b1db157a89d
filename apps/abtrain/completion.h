// Scripts that make shells complete the program's command line. Each is made of
// the parser's commands and options and of the configuration's keys, and looks
// for configurations where the program does.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"

namespace abtrain::app {

// What `--set` takes: "train.steps", and its words where some are.
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

// The command that a line without one means.
constexpr const char* kDefaultCommand = "train";

// In single quotes, for sh, bash and zsh.
std::string shell_quoted(const std::string& text);

// `text` with every @NAME@ of `parts` replaced.
struct Part {
  std::string name;
  std::string text;
};
std::string filled(std::string text, const std::vector<Part>& parts);

}  // namespace abtrain::app
