// abtrain report: finished runs beside each other.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "commands.h"
#include "run/compare.h"

namespace abtrain::app {

int run_report(const ReportArgs& args) {
  ABT_CHECK(
      !args.target || (*args.target > 0 && *args.target <= 1),
      Usage,
      "--target: expected an accuracy above 0 and at most 1, as 0.86; got ",
      *args.target);
  std::vector<run::RunRecord> runs;
  for (const std::string& folder : run::find_runs(args.runs)) {
    runs.push_back(run::read_run(folder, args.target));
  }
  const auto settings = run::group_runs(std::move(runs));
  if (args.json) {
    std::cout << run::comparison_json(settings, args.target).dump(2) << "\n";
  } else {
    std::cout << run::comparison_table(settings, args.target);
  }
  std::cout << std::flush;
  return 0;
}

}  // namespace abtrain::app
