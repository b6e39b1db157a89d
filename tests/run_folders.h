// Run folders made by hand, as small as `abtrain report` takes them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "temp_folder.h"

namespace abtrain::testing {

struct RunFolder {
  std::string name = "run_1";
  int seed = 1;
  std::string reducer = "plain";
  // Accuracies after 10, 20, ... steps; a step takes 0.1 s and sends 1000
  // bytes.
  std::vector<double> accuracies = {0.5, 0.8, 0.9};
  double accuracy = 0.9;
  bool finished = true;
  double core_share = 1;       // below it, beside other programs; 1: no such key
  double encode_seconds = -1;  // none: no such key
  int config_steps = 0;        // train.steps; 0: as by default
  double stored = 200;         // parameters of the final model
  bool text = false;           // the accuracies are bits per byte
  bool regression = false;     // the accuracies are R^2
  std::string config = "";     // more lines of config.yaml
  // Seconds that each worker waits for slower ones, on host0, host1, ...; none:
  // no such key. The slowest waits least.
  std::vector<double> waiting = {};
};

// Returns the run's folder.
inline std::string add_run(const TempFolder& folder, const RunFolder& run) {
  const std::string place = run.name + "/";
  const char* score = run.text ? "bits_per_byte" : "accuracy";
  folder.add(
      place + "config.yaml",
      "name: '" + std::filesystem::path(run.name).filename().string() +
          "'\nseed: " + std::to_string(run.seed) +
          "\nworkers: 4\nmethod: {name: ddp}\nreducer: {name: " + run.reducer +
          "}\ntrain: {steps: " + std::to_string(run.config_steps) + "}\n" + run.config);
  std::string lines;
  double step = 0;
  for (const double accuracy : run.accuracies) {
    step += 10;
    lines += nlohmann::json({{"event", "evaluate"},
                             {"step", step},
                             {"seconds", 99},
                             {score, accuracy},
                             {"loss", 1},
                             {"bytes_per_worker", 1000 * step},
                             {"train_seconds", 0.1 * step},
                             {run.regression ? "r2" : score, accuracy}})
                 .dump() +
             "\n";
  }
  folder.add(place + "metrics.jsonl", lines);
  if (run.finished) {
    nlohmann::json summary = {
        {score, run.accuracy},
        {run.regression ? "r2" : score, run.accuracy},
        {"steps", step},
        {"compression_ratio", 2.5},
        {"parameters", {{"dense", 500}, {"stored", run.stored}}},
        {"traffic", {{"bytes_per_worker", 1000 * step}, {"vs_fp32", 0.5}}},
        {"seconds", {{"train", 0.1 * step}, {"communication", 0.02 * step}}}};
    if (run.core_share < 1) {
      summary["core_share"] = run.core_share;
      summary["beside_others"] = true;
    }
    if (run.encode_seconds >= 0) {
      summary["reducer"] = {
          {"name", run.reducer},
          {"encode_seconds", run.encode_seconds},
          {"collective_seconds", 0.02 * step},
          {"decode_seconds", run.encode_seconds / 2}};
    }
    for (std::size_t i = 0; i < run.waiting.size(); ++i) {
      summary["by_worker"].push_back(
          {{"host", "host" + std::to_string(i)}, {"waiting", run.waiting[i]}});
      summary["slowest_worker"] =
          std::min_element(run.waiting.begin(), run.waiting.end()) - run.waiting.begin();
    }
    folder.add(place + "summary.json", summary.dump(2));
  }
  return folder.file(run.name);
}

}  // namespace abtrain::testing
