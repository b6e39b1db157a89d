// Parses the command line, runs its command and turns errors into exit codes.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "base/text.h"
#include "comm/failure.h"
#include "comm/launch.h"
#include "commands.h"
#include "configuration.h"
#include "hints.h"

namespace {

using namespace abtrain;

constexpr const char* kExamples =
    "Examples:\n"
    "  abtrain fashion_mnist_mlp          train a configuration by its name\n"
    "  abtrain my.yaml method.name=ddp    train a file, with a key overridden\n"
    "  abtrain plan my.yaml               what would be trained and sent\n"
    "  abtrain report runs/*              a comparison of finished runs\n"
    "  abtrain help train                 the options of a command\n"
    "  abtrain help optimizer.lr          what a key means\n";

// Wraps descriptions beside their options.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), 80 - get_column_width());
  }
};

// Puts the command in front of the words: `abtrain my.yaml` is `abtrain train my.yaml`, and
// `abtrain help plan` is `abtrain plan --help`.
std::vector<std::string> with_verb(
    std::vector<std::string> words, const std::vector<std::string>& verbs) {
  constexpr std::array<std::string_view, 3> kOwn{"--help", "-h", "--version"};
  const auto is_verb = [&](const std::string& word) { return std::ranges::count(verbs, word) > 0; };
  const std::string first = words.front();
  if (first == "help" && words.size() == 1) {
    return {"--help"};
  }
  if (first == "help" && words.size() == 2 && is_verb(words[1])) {
    return {words[1], "--help"};
  }
  const bool is_option = first.starts_with('-') && std::ranges::find(kOwn, first) == kOwn.end();
  if (is_option ||
      (!is_verb(first) && (app::is_override(first) || app::names_configuration(first)))) {
    words.insert(words.begin(), "train");
  }
  return words;
}

// Checks the first word, which chooses the command; if it is wrong, throws an error that suggests a
// similar word.
void check_verb(const std::string& verb, const std::vector<std::string>& verbs) {
  if (verb.starts_with('-') || std::ranges::count(verbs, verb) > 0) {
    return;
  }
  std::string meant = nearest(verb, verbs);
  if (meant.empty()) {
    meant = nearest(verb, app::configuration_names());
  }
  throw Error(
      ErrorKind::Usage, formatted(
                            "'{}' is neither a command nor a configuration{}", verb,
                            meant.empty() ? "" : formatted("; did you mean '{}'?", meant)));
}

// Reports words that the command does not take. CLI11 alone would first complain about missing
// arguments.
void check_unknown(const CLI::App& command, const std::vector<std::string>& words) {
  const std::vector<std::string> rest = command.remaining();
  const auto is_option = [](const std::string& word) {
    return word.size() > 1 && word.front() == '-';
  };
  const auto unknown = std::ranges::find_if(rest, is_option);
  if (unknown != rest.end()) {
    const std::string advice = app::advice_on(command, *unknown, words);
    throw Error(
        ErrorKind::Usage,
        formatted(
            "{}: unknown option '{}'{}", command.get_name(), unknown->substr(0, unknown->find('=')),
            advice.empty() ? "" : "; " + advice));
  }
  const auto set = std::ranges::find_if(rest, app::is_override);
  const bool has_sets = command.get_option_no_throw("--set") != nullptr;
  ABT_CHECK(
      set == rest.end() || !has_sets, Usage, "{}: did you mean --set {}?", command.get_name(),
      *set);
}

// Refuses empty values, as in --name "$NAME" with NAME unset; CLI11 would take them for no value.
void check_empty(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const bool needs_value = option->get_items_expected_min() > 0;
    ABT_CHECK(
        !needs_value || std::ranges::count(option->results(), "") == 0, Usage,
        "{}: expected {}, got ''", option->get_name(),
        option->get_type_name().empty() ? "a value" : option->get_type_name());
  }
}

const app::Command* chosen_of(const std::vector<app::Command>& commands) {
  const auto chosen =
      std::ranges::find_if(commands, [](const app::Command& c) { return c.app->parsed(); });
  return chosen == commands.end() ? nullptr : &*chosen;
}

// `verb`: receives the name of the command, once it is known.
int run(int argc, char** argv, std::string& verb) {
  std::vector<std::string> words(argv + 1, argv + argc);
  CLI::App parser{
      "abtrain trains neural networks with as little communication as "
      "possible.\n`abtrain CONFIG` is `abtrain train CONFIG`."};
  parser.name("abtrain");
  parser.formatter(std::make_shared<HelpFormatter>());  // for all commands
  parser.require_subcommand(1);
  parser.set_version_flag("--version", app::version_text());

  std::vector<app::Command> commands;
  std::vector<std::string> verbs;
  const auto add = [&](const char* group, std::vector<app::Command> added) {
    for (app::Command& command : added) {
      command.app->group(group);
      verbs.push_back(command.app->get_name());
      commands.push_back(std::move(command));
    }
  };
  add("Train and look", {app::add_train(parser), app::add_plan(parser), app::add_evaluate(parser),
                         app::add_predict(parser), app::add_generate(parser)});
  add("Compare", {app::add_rivals(parser), app::add_sweep(parser), app::add_report(parser)});
  add("Weights", {app::add_export(parser), app::add_decompose(parser)});
  add("Help", {app::add_doctor(parser), app::add_completion(parser, argv[0])});
  add("Help", {app::add_help(parser, verbs)});
  parser.footer(kExamples);  // added after the commands, which would inherit it

  if (words.empty()) {
    std::cerr << parser.help();
    return static_cast<int>(ErrorKind::Usage);
  }
  if (words.front() == "complete") {  // CLI11 would parse the words after it
    release_signals();
    return app::complete(parser, {words.begin() + 1, words.end()});
  }
  words = with_verb(std::move(words), verbs);
  check_verb(words.front(), verbs);
  if (!words.front().starts_with('-')) {
    verb = words.front();
  }
  try {
    // CLI11 takes the arguments in reverse order.
    parser.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version
      release_signals();
      return parser.exit(error);
    }
    if (const app::Command* chosen = chosen_of(commands)) {
      check_unknown(*chosen->app, words);
    }
    throw Error(ErrorKind::Usage, error.what());
  }
  const app::Command& chosen = *chosen_of(commands);  // the parser requires it
  check_empty(*chosen.app);
  if (!chosen.handles_signals) {
    release_signals();
  }
  return chosen.run();
}

}  // namespace

void abtrain::app::print(const std::string& text, bool exact) {
  std::cout << (exact && !is_tty(1) ? text : printable(text, "\n\t")) << std::flush;
}

namespace {

// Returns true if process 0 will report this error, since all processes of a run have the same
// command line. Before that, gives process 0 time: launchers end all processes when one has failed.
bool leaves_it_to_process_0(const std::string& command, const Error& error) {
  constexpr std::chrono::seconds kTime{3};
  const bool is_run = command == "train" || command == "sweep";
  if (!is_run || (error.kind() != ErrorKind::Usage && error.kind() != ErrorKind::Config)) {
    return false;
  }
  try {
    const comm::Launch launch = comm::find_launch();
    if (launch.rank == 0 || launch.is_alone()) {
      return false;
    }
  } catch (const Error&) {
    return false;
  }
  std::this_thread::sleep_for(kTime);
  return true;
}

int run_to_exit_code(int argc, char** argv) {
  std::string command;
  try {
    const int code = run(argc, argv, command);
    ABT_CHECK(
        code != 0 || std::cout.flush(), Io,  // a failure has its own message
        "cannot write to standard output (is the disk full, or its reader "
        "gone?)");
    return code;
  } catch (const Error& error) {
    if (leaves_it_to_process_0(command, error)) {
      return error.exit_code();
    }
    const bool has_place = dynamic_cast<const LocatedError*>(&error) != nullptr;
    // Messages may quote files and command lines.
    std::cerr << (has_place ? "" : "abtrain: ") << printable(error.what(), "\n\t") << '\n';
    if (error.kind() == ErrorKind::Usage && !has_place) {
      std::cerr
          << (command.empty() ? "`abtrain --help` lists commands and options.\n"
                              : formatted("`abtrain help {}` lists its options.\n", command));
    }
    return error.exit_code();
  } catch (...) {
    const auto error = std::current_exception();
    const int code = comm::exit_code_of(error);
    std::cerr << "abtrain: " << (code == 1 ? "internal error: " : "")
              << printable(comm::message_of(error), "\n\t") << '\n';
    return code;
  }
}

// Profilers that are loaded into the program, and sanitizers, report when the global objects are
// destroyed.
bool reports_at_exit() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return env("LD_PRELOAD") || env("CUDA_INJECTION64_PATH");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  catch_signals();  // if early_start.cpp has not done so
  const int code = run_to_exit_code(argc, argv);
  // Everything is written and closed by now. Destroying the global objects of LibTorch and CUDA
  // would take 0.1 s, during which Ctrl-C would turn a finished run into a failed one.
  if (!reports_at_exit()) {
    std::fflush(nullptr);
    std::_Exit(code);
  }
  return code;
}
