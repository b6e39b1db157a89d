// abtrain completion: scripts for bash, zsh and fish.
#include "completion.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/options_apply.h"
#include "commands.h"
#include "config/run_options.h"

namespace abtrain::app {

namespace {

std::vector<KeyInfo> configuration_keys() {
  config::RunOptions defaults;
  std::vector<KeyInfo> keys;
  each_key(
      config::fields_of(defaults).list(),
      [&](const std::string& name, const Field& field) {
        keys.push_back({name, field.help, field.choices});
      });
  return keys;
}

std::string
replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos;
       at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

}  // namespace

std::string shell_quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string filled(std::string text, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    text = replaced(text, "@" + part.name + "@", part.text);
  }
  return text;
}

Command add_completion(CLI::App& parser) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command = *parser.add_subcommand(
      "completion", "print a script that completes commands, options and keys");
  command.add_option("shell", *shell, "the shell to print the script for")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  return {&command, [shell, &parser] {
            const CommandInfo program = describe_parser(parser);
            const std::vector<KeyInfo> keys = configuration_keys();
            std::cout << (*shell == "bash"  ? bash_completion(program, keys)
                          : *shell == "zsh" ? zsh_completion(program, keys)
                                            : fish_completion(program, keys))
                      << std::flush;
            return 0;
          }};
}

}  // namespace abtrain::app
