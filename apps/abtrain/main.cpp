// Parses the command line, runs its command and turns errors into exit codes.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/terminal.h"
#include "base/text.h"
#include "comm/failure.h"
#include "commands.h"

namespace {

using namespace abtrain;

constexpr int kUsageError = static_cast<int>(ErrorKind::Usage);

constexpr const char* kExamples =
    "Examples:\n"
    "  abtrain --config fashion_mnist_mlp.yaml\n"
    "  abtrain --config my.yaml --set workers=8 --set method.name=ddp --name "
    "ddp\n"
    "  abtrain plan --config my.yaml      what would be trained and sent\n"
    "  abtrain evaluate runs/my           accuracy of a finished run\n"
    "  abtrain generate runs/my --prompt TEXT\n"
    "  abtrain sweep my_sweep.yaml        many runs of one configuration\n"
    "  abtrain report runs/*              a comparison of finished runs\n"
    "  abtrain export runs/my -o my.safetensors --form merged\n"
    "  abtrain decompose weights.safetensors --keep 0.9 -o small.safetensors\n"
    "  abtrain doctor                     what this machine has and lacks\n";

// `abtrain --config FILE` is `abtrain train --config FILE`.
std::vector<std::string> with_verb(std::vector<std::string> arguments) {
  constexpr std::array<std::string_view, 3> kOwn{"--help", "-h", "--version"};
  const bool options_first =
      !arguments.empty() && arguments.front().starts_with('-');
  if (options_first &&
      std::ranges::find(kOwn, arguments.front()) == kOwn.end()) {
    arguments.insert(arguments.begin(), "train");
  }
  return arguments;
}

// The first word chooses the command: where it is wrong, suggest what was
// meant.
void check_verb(
    const std::string& verb,
    const std::vector<app::Command>& commands) {
  std::vector<std::string> verbs;
  for (const app::Command& command : commands) {
    verbs.push_back(command.app->get_name());
  }
  if (verb.starts_with('-') || std::ranges::count(verbs, verb) > 0) {
    return;
  }
  if (verb.ends_with(".yaml") || verb.ends_with(".yml")) {
    throw Error(
        ErrorKind::Usage,
        formatted("did you mean `abtrain --config {}`?", verb));
  }
  const std::string meant = nearest(verb, verbs);
  throw Error(
      ErrorKind::Usage,
      formatted(
          "unknown command '{}'{}",
          verb,
          meant.empty() ? "" : formatted("; did you mean '{}'?", meant)));
}

// CLI11 complains about missing options before unknown ones, so that a mistyped
// --config would be reported as a missing one.
void check_unknown(const CLI::App& command) {
  const std::vector<std::string> rest = command.remaining();
  const auto is_option = [](const std::string& word) {
    return word.size() > 1 && word.front() == '-';
  };
  const auto unknown = std::ranges::find_if(rest, is_option);
  if (unknown == rest.end()) {
    return;
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  const std::string given = unknown->substr(0, unknown->find('='));
  // A single letter is close to every other one.
  const std::string meant = given.size() > 2 ? nearest(given, names) : "";
  throw Error(
      ErrorKind::Usage,
      formatted(
          "{}: unknown option '{}'{}",
          command.get_name(),
          given,
          meant.empty() ? "" : formatted("; did you mean {}?", meant)));
}

// An empty value would count as no value, as in --name "$NAME" where NAME is
// unset.
void check_empty(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const bool needs_value = option->get_items_expected_min() > 0;
    ABT_CHECK(
        !needs_value || std::ranges::count(option->results(), "") == 0,
        Usage,
        "{}: expected {}, got ''",
        option->get_name(),
        option->get_type_name().empty() ? "a value" : option->get_type_name());
  }
}

const app::Command* chosen_of(const std::vector<app::Command>& commands) {
  const auto chosen = std::ranges::find_if(
      commands, [](const app::Command& c) { return c.app->parsed(); });
  return chosen == commands.end() ? nullptr : &*chosen;
}

int run(int argc, char** argv) {
  const auto arguments = with_verb({argv + 1, argv + argc});
  CLI::App parser{
      "abtrain trains neural networks with as little communication as "
      "possible.\n`abtrain --config FILE` is `abtrain train --config FILE`."};
  parser.name("abtrain");
  parser.footer(kExamples);
  parser.require_subcommand(1);
  parser.set_version_flag("--version", app::version_text());

  const std::vector<app::Command> commands = {
      app::add_train(parser),
      app::add_plan(parser),
      app::add_evaluate(parser),
      app::add_generate(parser),
      app::add_sweep(parser),
      app::add_report(parser),
      app::add_export(parser),
      app::add_decompose(parser),
      app::add_doctor(parser),
      app::add_completion(parser, argv[0]),
      app::add_man(parser)};

  if (arguments.empty()) {
    std::cerr << parser.help();
    return kUsageError;
  }
  if (arguments.front() == "complete") {  // CLI11 would read the words
    return app::complete(parser, {arguments.begin() + 1, arguments.end()});
  }
  check_verb(arguments.front(), commands);
  try {
    // CLI11 takes the arguments in reverse order.
    parser.parse(
        std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version
      return parser.exit(error);
    }
    if (const app::Command* chosen = chosen_of(commands)) {
      check_unknown(*chosen->app);
    }
    throw Error(ErrorKind::Usage, error.what());
  }
  const app::Command& chosen = *chosen_of(commands);  // the parser requires one
  check_empty(*chosen.app);
  return chosen.run();
}

// Escapes control characters: messages quote files and command lines.
std::string shown(const char* message) {
  return printable(message, "\n\t");
}

}  // namespace

void abtrain::app::print(const std::string& text, bool exact) {
  std::cout << (exact && !is_tty(1) ? text : printable(text, "\n\t"))
            << std::flush;
}

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    ABT_CHECK(
        std::cout.flush(), Io, "cannot write to standard output (disk full?)");
    return code;
  } catch (const LocatedError& error) {
    std::cerr << shown(error.what()) << '\n';
    return error.exit_code();
  } catch (const Error& error) {
    std::cerr << "abtrain: " << shown(error.what()) << '\n';
    if (error.kind() == ErrorKind::Usage) {
      std::cerr << "`abtrain --help` lists commands and options.\n";
    }
    return error.exit_code();
  } catch (...) {
    const auto error = std::current_exception();
    const int code = comm::exit_code_of(error);
    std::cerr << "abtrain: " << (code == 1 ? "internal error: " : "")
              << shown(comm::message_of(error).c_str()) << '\n';
    return code;
  }
}
