// The subcommands. Each has a file of its own, which defines its options and
// what it does.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace abtrain::app {

struct Command {
  CLI::App* app;  // owned by the parser
  // Runs the command once the command line is parsed. Returns the program's
  // exit code; throws abtrain::Error.
  std::function<int()> run;
};

Command add_train(CLI::App& parser);
Command add_plan(CLI::App& parser);
Command add_evaluate(CLI::App& parser);
Command add_sweep(CLI::App& parser);
Command add_report(CLI::App& parser);
Command add_export(CLI::App& parser);
Command add_decompose(CLI::App& parser);
Command add_doctor(CLI::App& parser);
Command add_completion(CLI::App& parser);
Command add_man(CLI::App& parser);

// Prints text for people, with control characters escaped. `exact`: text for
// programs, which is escaped only on a terminal.
void print(const std::string& text, bool exact = false);

// What `--version` prints, without a newline at the end.
std::string version_text();

}  // namespace abtrain::app
