// abtrain evaluate: measures the model of a finished run on its test set.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/log.h"
#include "base/machine_text.h"
#include "choice_option.h"
#include "configuration.h"
#include "train/class_scores.h"
#include "train/evaluate_run.h"

namespace abtrain::app {

namespace {

struct EvaluateArgs {
  weights::RunModel model;
  std::vector<std::string> sets;  // override the run's config.yaml
  bool json = false;
};

}  // namespace

Command add_evaluate(CLI::App& parser) {
  auto args = std::make_shared<EvaluateArgs>();
  CLI::App& command =
      *parser.add_subcommand("evaluate", "measure the model of a run on its test set");
  add_run_options(command, args->model);
  add_repeated(
      command, "--set", args->sets, "a.b=VALUE",
      "override one key of the run's configuration; may be repeated");
  command.add_flag("--json", args->json, "print one JSON object, with the figures of all classes");
  command.footer(
      "Examples:\n"
      "  abtrain evaluate runs/my\n"
      "  abtrain evaluate runs/my --set data.root=/other/data\n");
  return {&command, [args] {
            Log log;
            const ChosenRun run = choose_model(args->model, args->sets);
            const auto result = train::evaluate_run(run.options, args->model, log);
            print(args->json ? json_text(result, -1) : train::evaluation_text(result), args->json);
            return 0;
          }};
}

}  // namespace abtrain::app
