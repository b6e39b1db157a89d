// The subcommands. Each has a file of its own, which defines its options and its work.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace abtrain::app {

struct Command {
  CLI::App* app;  // owned by the parser
  // Runs the command once the command line is parsed. Returns the program's
  // exit code; throws abtrain::Error.
  std::function<int()> run;
  // The command itself handles signals (base/signals.h), from its beginning.
  bool handles_signals = false;
};

Command add_train(CLI::App& parser);
Command add_plan(CLI::App& parser);
Command add_evaluate(CLI::App& parser);
Command add_predict(CLI::App& parser);
Command add_generate(CLI::App& parser);
Command add_sweep(CLI::App& parser);
Command add_rivals(CLI::App& parser);
Command add_report(CLI::App& parser);
Command add_export(CLI::App& parser);
Command add_decompose(CLI::App& parser);
Command add_doctor(CLI::App& parser);
// `called`: the name by which the program was called.
Command add_completion(CLI::App& parser, const std::string& called);
// `verbs`: the names of the other commands. main.cpp turns `help plan` into `plan --help`.
Command add_help(CLI::App& parser, const std::vector<std::string>& verbs);

// Prints the completions of a command line. `words`: the words so far, without the program's name.
// Returns 0, whatever the words are.
int complete(const CLI::App& parser, std::vector<std::string> words);

// Prints text with control characters escaped. `exact`: text for programs to read, escaped only on
// a terminal.
void print(const std::string& text, bool exact = false);

// The output of `--version`, without a newline at the end.
std::string version_text();

}  // namespace abtrain::app
