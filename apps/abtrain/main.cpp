// Reads the command line and turns errors into exit codes. The only place that
// knows CLI11.
#include <CLI/CLI.hpp>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "commands.h"

namespace {

using namespace abtrain;

constexpr std::array<std::string_view, 5> kVerbs{
    "train",
    "plan",
    "evaluate",
    "report",
    "doctor"};

constexpr int kUsageError = static_cast<int>(ErrorKind::Usage);

constexpr const char* kExamples =
    "Examples:\n"
    "  abtrain --config fashion_mnist_mlp.yaml\n"
    "  abtrain --config my.yaml --set workers=8 --set method.name=ddp --name "
    "ddp\n"
    "  abtrain plan --config my.yaml      what would be trained and sent\n"
    "  abtrain evaluate runs/my           accuracy of a finished run\n"
    "  abtrain report runs/*              finished runs beside each other\n"
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

// The first word decides, so a wrong one is worth a guess at what was meant.
void check_verb(const std::vector<std::string>& arguments) {
  const std::string& verb = arguments.front();
  if (verb.starts_with('-') ||
      std::ranges::find(kVerbs, verb) != kVerbs.end()) {
    return;
  }
  if (verb.ends_with(".yaml") || verb.ends_with(".yml")) {
    throw Error(
        ErrorKind::Usage, str("did you mean `abtrain --config ", verb, "`?"));
  }
  const std::string meant = nearest(verb, {kVerbs.begin(), kVerbs.end()});
  throw Error(
      ErrorKind::Usage,
      str("no command '",
          verb,
          "'",
          meant.empty() ? "" : str("; did you mean '", meant, "'?")));
}

void add_config_options(CLI::App& command, app::ConfigArgs& config) {
  command
      .add_option(
          "-c,--config",
          config.config,
          "the configuration: a path, or a name in the configs folder")
      ->required()
      ->type_name("FILE");
  command
      .add_option(
          "--set", config.sets, "override one key of it; may be repeated")
      ->type_name("a.b=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--name", config.name, "name of the run and its folder")
      ->type_name("NAME");
  command.add_option("--output", config.output, "where run folders are made")
      ->type_name("FOLDER");
}

void add_train_options(CLI::App& command, app::TrainArgs& args) {
  command
      .add_option(
          "--resume",
          args.resume,
          "auto: go on from the run's newest checkpoint, if there is one; none; or "
          "the folder of a run or checkpoint (default: auto in a Slurm job)")
      ->type_name("auto|none|FOLDER");
  constexpr const char* kProcesses = "Processes (else mpirun, srun, torchrun tell)";
  command
      .add_option("--rank", args.launch.rank, "which process this one is, from 0")
      ->group(kProcesses);
  command
      .add_option("--processes", args.launch.processes, "how many there are")
      ->group(kProcesses);
  command
      .add_option(
          "--local-rank", args.launch.local_rank, "which one on this host")
      ->group(kProcesses);
  command
      .add_option(
          "--local-processes",
          args.launch.local_processes,
          "how many there are on this host")
      ->group(kProcesses);
  command
      .add_option(
          "--meet-at", args.launch.meet_at, "an address of process 0's host")
      ->type_name("HOST:PORT")
      ->group(kProcesses);
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

  app::TrainArgs train_args;
  app::ConfigArgs& config = train_args.config;
  bool dry_run = false;
  CLI::App& train = *parser.add_subcommand("train", "train a model");
  add_config_options(train, config);
  add_train_options(train, train_args);
  train.add_flag("--dry-run", dry_run, "only print the plan, as `plan` does");
  CLI::App& plan = *parser.add_subcommand(
      "plan", "print what would be trained and sent; train nothing");
  add_config_options(plan, config);

  app::EvaluateArgs evaluate_args;
  CLI::App& evaluate = *parser.add_subcommand(
      "evaluate", "measure the model of a run on its test set");
  evaluate.add_option("run", evaluate_args.run, "a run folder, as runs/my")
      ->required()
      ->type_name("RUN");
  evaluate
      .add_option(
          "--model",
          evaluate_args.model,
          "a file of the run or a path (default model.safetensors)")
      ->type_name("FILE");
  evaluate
      .add_option(
          "--set", evaluate_args.sets, "override one key of the run's config")
      ->type_name("a.b=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app::ReportArgs report_args;
  CLI::App& report = *parser.add_subcommand(
      "report", "compare finished runs: time to an accuracy, bytes, speed");
  report
      .add_option(
          "run", report_args.runs, "run folders, or folders that hold some")
      ->required()
      ->type_name("RUN");
  report
      .add_option(
          "--target", report_args.target, "time to this accuracy, 0 to 1")
      ->type_name("ACC");
  report.add_flag("--json", report_args.json, "JSON in place of the table");
  CLI::App& doctor = *parser.add_subcommand(
      "doctor", "print what this machine has, what is missing, how to get it");

  if (arguments.empty()) {
    std::cerr << parser.help();
    return kUsageError;
  }
  check_verb(arguments);
  try {
    // CLI11 takes its arguments last one first.
    parser.parse(
        std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version
      return parser.exit(error);
    }
    throw Error(ErrorKind::Usage, error.what());
  }
  if (train && !dry_run) {
    return app::run_train(train_args);
  }
  if (train || plan) {
    return app::run_plan({config});
  }
  if (evaluate) {
    return app::run_evaluate(evaluate_args);
  }
  if (report) {
    return app::run_report(report_args);
  }
  if (doctor) {
    return app::run_doctor();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    ABT_CHECK(
        std::cout.flush(), Io, "standard output: cannot be written (disk full?)");
    return code;
  } catch (const LocatedError& error) {
    std::cerr << error.what() << '\n';
    return error.exit_code();
  } catch (const Error& error) {
    std::cerr << "abtrain: " << error.what() << '\n';
    if (error.kind() == ErrorKind::Usage) {
      std::cerr << "`abtrain --help` lists commands and options.\n";
    }
    return error.exit_code();
  } catch (const c10::OutOfMemoryError& error) {
    std::cerr << "abtrain: out of GPU memory: "
              << error.what_without_backtrace()
              << "\nA smaller data.batch_size or model, or precision: bf16, "
                 "needs less.\n";
    return 1;
  } catch (const std::bad_alloc&) {
    std::cerr << "abtrain: out of memory; a smaller data.batch_size, model or "
                 "number of workers needs less\n";
    return 1;
  } catch (const c10::Error& error) {
    std::cerr << "abtrain: internal error: " << error.what_without_backtrace()
              << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "abtrain: internal error: " << error.what() << '\n';
    return 1;
  }
}
