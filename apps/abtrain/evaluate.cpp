// abtrain evaluate: measures the model of a finished run on its test set.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/log.h"
#include "configuration.h"
#include "train/session.h"

namespace abtrain::app {

namespace {

struct EvaluateArgs {
  std::string run;                // a run folder
  std::string model;              // a file in it, or a path; "": its own model
  std::vector<std::string> sets;  // override the run's config.yaml
};

int run_evaluate(const EvaluateArgs& args) {
  Log log;
  print(
      train::evaluate_run(read_run_configuration(args.run, args.sets), args.run, args.model, log));
  return 0;
}

}  // namespace

Command add_evaluate(CLI::App& parser) {
  auto args = std::make_shared<EvaluateArgs>();
  CLI::App& command =
      *parser.add_subcommand("evaluate", "measure the model of a run on its test set");
  add_run_options(command, args->run, args->model);
  add_sets(command, args->sets, "override one key of the run's configuration; may be repeated");
  command.footer(
      "Examples:\n"
      "  abtrain evaluate runs/my\n"
      "  abtrain evaluate runs/my --set data.root=/other/data\n");
  return {&command, [args] { return run_evaluate(*args); }};
}

}  // namespace abtrain::app
