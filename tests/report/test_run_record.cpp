#include "report/run_record.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "error_of.h"
#include "run_folders.h"

namespace abtrain::report {
namespace {

using testing::add_run;

std::string fault_of(const std::string& folder, ErrorKind kind) {
  return expect_error([&] { read_run(folder); }, kind);
}

TEST(RunRecord, AFolderIsReadWithItsCurveAndItsFigures) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a", .seed = 3, .accuracies = {0.5, 0.85}});
  const RunRecord run = read_run(place);
  EXPECT_EQ(run.name, "a");
  EXPECT_EQ(run.seed, 3U);
  ASSERT_EQ(run.evaluations.size(), 2U);
  EXPECT_DOUBLE_EQ(run.evaluations[1].seconds, 2);
  EXPECT_EQ(run.evaluations[1].step, 20);
  EXPECT_EQ(run.evaluations[1].bytes, 20000);
  EXPECT_EQ(run.evaluations[1].accuracy, 0.85);
  ASSERT_TRUE(run.summary);
  EXPECT_DOUBLE_EQ(run.summary->ms_per_step, 100);
  EXPECT_DOUBLE_EQ(run.summary->communication_share, 0.2);
  EXPECT_DOUBLE_EQ(run.summary->sent_bits, 8 * 1000 / 500.0);
  EXPECT_DOUBLE_EQ(*run.summary->compression_ratio, 2.5);
  EXPECT_DOUBLE_EQ(*run.summary->parameters, 200);
  EXPECT_DOUBLE_EQ(*run.summary->vs_fp32, 0.5);
  EXPECT_FALSE(run.summary->encode_ms);
  EXPECT_FALSE(run.vnmse);
  EXPECT_EQ(run.unfinished, "");
  EXPECT_EQ(run.value_of("method.name"), "ddp");
  EXPECT_EQ(run.value_of("seed"), "3");
  EXPECT_EQ(run.value_of("methd.name"), "");
}

TEST(RunRecord, DecompositionsHaveRanksAndTheirEndsSingularValues) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  std::string lines;
  for (const int step : {1, 2, 3}) {
    const std::string s = std::to_string(step);
    lines += R"({"event":"decompose","step":)" + s +
             R"(,"layers":[{"name":"fc1","m":8,"n":4,"rank":)" + s +
             R"(,"singular_values":{"index":[1,4],"value":[)" + s +
             R"(,0.5]}},{"name":"head","m":4,"n":2,"rank":0}]})" + "\n";
  }
  folder.add("a/metrics.jsonl", lines);
  const RunRecord run = read_run(place);
  ASSERT_EQ(run.decompositions.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const Decomposition& cut = run.decompositions[i];
    EXPECT_EQ(cut.step, i + 1);
    ASSERT_EQ(cut.layers.size(), 2U);
    EXPECT_EQ(cut.layers[0].name, "fc1");
    EXPECT_EQ(cut.layers[0].m, 8);
    EXPECT_EQ(cut.layers[0].rank, i + 1);
    EXPECT_EQ(cut.layers[0].spectrum.has_value(), i != 1);
    EXPECT_FALSE(cut.layers[1].spectrum);
  }
  const SpectrumSample& last = *run.decompositions[2].layers[0].spectrum;
  EXPECT_EQ(last.index, (std::vector<double>{1, 4}));
  EXPECT_EQ(last.value, (std::vector<double>{3, 0.5}));
  const RunRecord short_one = read_run(place, Spectra::Skip);
  EXPECT_EQ(short_one.decompositions[2].layers[0].rank, 3);
  EXPECT_FALSE(short_one.decompositions[2].layers[0].spectrum);
}

TEST(RunRecord, EvaluationsOfTheEstimateAreAveraged) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a", .finished = false});
  folder.add(
      "a/metrics.jsonl",
      R"({"event": "compression", "step": 1, "seconds": 1, "vnmse": 0.25}
{"event": "compression", "step": 2, "seconds": 1, "vnmse": 0.5}
{"event": "compression", "step": 3, "sec)");
  EXPECT_DOUBLE_EQ(*read_run(place).vnmse, 0.375);
}

TEST(RunRecord, WhyARunHasNotEndedIsSaid) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a", .finished = false});
  const auto why = [&] { return read_run(place).unfinished; };
  EXPECT_EQ(why(), "stopped at step 30");
  // The length of a run of epochs is known once it has a checkpoint.
  folder.add(
      "a/checkpoints/step-0000000020/manifest.json",
      R"({"format": 2, "step": 20, "run_steps": 60, "metrics_bytes": 0,
          "workers": 1, "leads": [0], "validation_accuracy": null})");
  EXPECT_EQ(why(), "stopped at step 30 of 60; --resume auto continues from step 20");
  folder.add("a/failure.json", R"({"exit_code": 70, "message": "step 3: the loss is inf\nmore"})");
  EXPECT_EQ(
      why(),
      "failed at step 30 of 60: exit code 70: step 3: the loss is inf; "
      "--resume auto continues from step 20");
  EXPECT_EQ(read_run(place).progress(), "failed at step 30 of 60");
  // Of a run that failed before it trained there are no metrics.
  std::filesystem::remove(place + "/metrics.jsonl");
  EXPECT_EQ(read_run(place).progress(), "failed at step 0 of 60");
}

TEST(RunRecord, TimesOfWorkersThatCannotBeAreNamed) {
  for (const auto& [workers, slowest, what] :
       {std::tuple(
            R"([{"host": "a", "waiting": 1}, {"host": "b", "waiting": "long"}])", 0,
            "by_worker: expected a host and the seconds"),
        std::tuple(R"([{"waiting": 1}])", 0, "by_worker: expected a host and the seconds"),
        std::tuple("[7]", 0, "by_worker: expected a host and the seconds"),
        std::tuple("7", 0, "by_worker: expected a list"),
        std::tuple(R"([{"host": "a", "waiting": 1}])", 1, "slowest_worker: ")}) {
    const TempFolder folder;
    const std::string place = add_run(folder, {.name = "a"});
    auto summary = nlohmann::json::parse(read_file(place + "/summary.json"));
    summary["by_worker"] = nlohmann::json::parse(workers);
    summary["slowest_worker"] = slowest;
    folder.add("a/summary.json", summary.dump());
    expect_error([&] { read_run(place); }, ErrorKind::DamagedData, {what});
  }
}

TEST(RunRecord, DamageIsNamedWithFileAndLine) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  const std::string metrics = place + "/metrics.jsonl";
  const std::string summary = place + "/summary.json";
  const auto expect = [&](const std::string& lines, const std::string& what) {
    folder.add("a/metrics.jsonl", lines);
    EXPECT_EQ(fault_of(place, ErrorKind::DamagedData), metrics + what);
  };
  const std::string cut_off = "error: expected a JSON object, but this is damaged or cut off";
  expect("{\"event\": \"step\"}\n{\"event\": \"st\n", ":2: " + cut_off);
  expect("{\"event\": \"step\"}\n\n", ":2: " + cut_off);
  // Printing it in the complaint ran out of stack.
  std::string deep(100'000, '[');
  deep.append(100'000, ']');
  expect(
      "{\"event\": \"step\"}\n{\"event\": " + deep + "}\n",
      ":2: error: expected a JSON object, but this is nested more than 64 "
      "levels deep");
  expect(
      "{\"event\": \"step\", \"loss\": 1e999}\n",
      ":1: error: expected a JSON object, but a number here is outside the "
      "range of a double");
  expect("[3]\n", ":1: error: expected a JSON object");
  // Once the run has ended its last line must be whole.
  expect("{\"event\": \"step\"}\n{\"ev", ":2: error: the line is cut off");
  expect(
      "{\"event\": \"evaluate\", \"step\": 1, \"train_seconds\": 1, "
      "\"bytes_per_worker\": 1, \"accuracy\": \"high\"}\n",
      ":1: error: accuracy: expected a number, got \"high\"");
  for (const char* layers :
       {"3", "[3]", R"([{"name":"a","m":1,"n":1}])",
        R"([{"name":"a","m":1,"n":1,"rank":1,"singular_values":{"index":[1]}}])",
        R"([{"name":"a","m":1,"n":1,"rank":1,"singular_values":{"index":[1],"value":[]}}])",
        R"([{"name":"a","m":1,"n":1,"rank":1,"singular_values":{"index":[1])"}) {
    folder.add(
        "a/metrics.jsonl",
        R"({"event":"decompose","step":1,"layers":)" + std::string(layers) + "}\n");
    EXPECT_EQ(fault_of(place, ErrorKind::DamagedData).find(metrics + ":1: error: "), 0U);
  }

  folder.add("a/metrics.jsonl", "");
  folder.add("a/summary.json", "{\n\"accuracy\": 0.5,\n\"steps\": }");
  EXPECT_EQ(fault_of(place, ErrorKind::DamagedData), summary + ":3: " + cut_off);
  folder.add("a/summary.json", "{\"steps\": 3}");
  EXPECT_EQ(
      fault_of(place, ErrorKind::DamagedData),
      summary + ":1: error: seconds.train: expected a number, got nothing");
}

TEST(RunRecord, WhatIsMissingIsNamed) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  std::filesystem::remove(place + "/metrics.jsonl");
  EXPECT_EQ(fault_of(place, ErrorKind::MissingInput), place + ": it has no metrics.jsonl");
  std::filesystem::remove(place + "/config.yaml");
  EXPECT_EQ(fault_of(place, ErrorKind::MissingInput), place + ": it has no config.yaml");
}

TEST(FindRuns, LooksInFoldersOfFolders) {
  const TempFolder folder;
  const std::string a = add_run(folder, {.name = "sweeps/groups/a"});
  const std::string b = add_run(folder, {.name = "sweeps/groups/b"});
  const std::string c = add_run(folder, {.name = "sweeps/c"});
  folder.add("sweeps/groups/notes.txt", "");
  folder.add("sweeps/groups/a/checkpoints/1/manifest.json", "");
  using Paths = std::vector<std::string>;
  EXPECT_EQ(find_runs({a}).folders, Paths{a});
  EXPECT_EQ(find_runs({folder / "sweeps"}).folders, (Paths{c, a, b}));
  // Each once, in the order of the arguments.
  EXPECT_EQ(find_runs({b, folder / "sweeps/groups"}).folders, (Paths{b, a}));
  // Not three levels deep.
  const FoundRuns none = find_runs({folder.path()});
  EXPECT_EQ(none.folders, Paths{c});
  EXPECT_TRUE(none.without.empty());
  folder.add("other/notes.txt", "");
  EXPECT_EQ(find_runs({folder / "other"}).without.size(), 1U);
  EXPECT_THROW(find_runs({folder / "nothing"}), Error);
}

}  // namespace
}  // namespace abtrain::report
