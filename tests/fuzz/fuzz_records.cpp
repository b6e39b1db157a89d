// summary.json, a line of dots, and metrics.jsonl of a run: as `abtrain report`
// reads and prints them, as `rivals` measures pilots, as the events of a run that
// goes on are made of them.
#include "base/json.h"
#include "config/config.h"
#include "plan/finished_run.h"
#include "report/formats.h"
#include "run_folder/tensorboard.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

const std::vector<std::string> kWords = {
    "{\"event\":\"step\",",
    "{\"event\":\"evaluate\",",
    "\"accuracy\":",
    "{\"event\":\"decompose\",",
    "\"layers\":[",
    "\"singular_values\":{",
    "\"index\":[",
    "\"value\":[",
    "\"name\":\"a\",",
    "\"rank\":",
    "\"m\":",
    "\"step\":",
    "\"seconds\":",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "...\n",
    "1e308",
    "-1e308",
    "1e999",
    "null",
    "\"\\u001b[2J\"",
    "\"",
    "\xc3",
    "{\"event\":\"compression\",\"vnmse\":0.5}\n",
    "\"traffic\":",
    "\"bytes_per_worker\":",
    "\"train_seconds\":",
    "\"final\":true"};

void read_input(std::string_view text) {
  static const TempFolder folder;
  const std::string run = folder.file("run");
  const std::string config =
      "name: run\nworkers: 2\ndata: {name: fashion-mnist}\n"
      "method: {name: ddp}\n";
  folder.add("run/config.yaml", config);
  const std::size_t dots = text.find("...\n");
  const std::string lines(dots == std::string_view::npos ? "" : text.substr(dots + 4));
  write_file(run + "/metrics.jsonl", lines);
  write_file(run + "/summary.json", text.substr(0, dots));
  std::string all;
  refusing({ErrorKind::DamagedData}, [&] {
    const report::Comparison comparison = report::compare({run}, 0.5);
    const auto columns = report::all_columns(0.5);
    report::as_table(comparison, columns, true);
    report::as_csv(comparison, columns);
    report::as_json(comparison, columns);
  });
  all += outcome();
  const config::RunOptions options = config::read_config(run + "/config.yaml");
  refusing({ErrorKind::DamagedData}, [&] { plan::seconds_over(options, run, {}); });
  all += outcome();
  Log log(LogLevel::Quiet);
  run_folder::TensorBoard(run, options, lines, log);
  outcome() = all;
}

}  // namespace abtrain::fuzz
