// abtrain report: finished runs beside each other.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "commands.h"
#include "sweep/compare.h"

namespace abtrain::app {

namespace {

struct ReportArgs {
  std::vector<std::string> runs;  // run folders, or folders of such
  std::optional<double> target;   // an accuracy, 0 to 1
  bool json = false;
};

int run_report(const ReportArgs& args) {
  ABT_CHECK(
      !args.target || (*args.target > 0 && *args.target <= 1),
      Usage,
      "--target: expected an accuracy above 0 and at most 1, as 0.86; got ",
      *args.target);
  std::vector<sweep::RunRecord> runs;
  for (const std::string& folder : sweep::find_runs(args.runs)) {
    runs.push_back(sweep::read_run(folder, args.target));
  }
  const auto settings = sweep::group_runs(std::move(runs));
  if (args.json) {
    std::cout << sweep::comparison_json(settings, args.target).dump(2) << "\n";
  } else {
    std::cout << sweep::comparison_table(settings, args.target);
  }
  std::cout << std::flush;
  return 0;
}

}  // namespace

Command add_report(CLI::App& parser) {
  auto args = std::make_shared<ReportArgs>();
  CLI::App& command = *parser.add_subcommand(
      "report", "compare finished runs: time to an accuracy, bytes, speed");
  command
      .add_option("run", args->runs, "run folders, or folders that hold some")
      ->required()
      ->type_name("RUN");
  command.add_option("--target", args->target, "time to this accuracy, 0 to 1")
      ->type_name("ACC");
  command.add_flag("--json", args->json, "JSON in place of the table");
  return {&command, [args] { return run_report(*args); }};
}

}  // namespace abtrain::app
