// The table at the end of a run. What summary.json holds after whole runs is
// tested in tests/metrics and test_trainer.cpp.
#include "train/summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "error_of.h"

namespace abtrain::train {
namespace {

using nlohmann::ordered_json;

// A ring all-reduce of all gradients: 2 (n - 1) / n of their bytes.
TEST(DataParallelBytes, AreThoseOfAnAllReducePerStep) {
  EXPECT_EQ(data_parallel_bytes(1000, 10, 4, 4), 60000);
  EXPECT_EQ(data_parallel_bytes(1000, 10, 2, 2), 20000);
  EXPECT_EQ(data_parallel_bytes(1000, 10, 1, 4), 0);
}

ordered_json summary_of_one_worker() {
  return ordered_json::parse(R"({
    "accuracy": 0.875, "loss": 0.5, "steps": 12, "compression_ratio": 2.5,
    "parameters": {"dense": 1000, "stored": 400, "trained_by_a_worker": 1000},
    "traffic": {"bytes_per_worker": 0, "vs_fp32": null, "vs_bf16": null},
    "seconds": {"train": 2, "compute": 1, "communication": 0, "svd": 0.5,
                "data": 0.5, "evaluate": 0.25},
    "reducer": {"encode_seconds": 0, "decode_seconds": 0},
    "layers": [{"name": "fc1", "m": 40, "n": 20, "rank": 8,
                "energy": 0.96, "first_energy": 0.9},
               {"name": "fc2", "m": 20, "n": 10, "rank": 0,
                "energy": 1, "first_energy": 1}]})");
}

TEST(ReportTable, SaysWhatARunReached) {
  config::RunOptions options;
  options.name = "small";
  const std::string table = report_table(options, summary_of_one_worker(), "runs/small");
  EXPECT_TRUE(table.starts_with("small: ")) << table;
  expect_has(table, ", 1 worker, 12 steps\n");
  expect_has(table, "87.50 % of the merged model (loss 0.5000)\n");
  expect_has(table, "2.50:1 (400 of 1,000 parameters;");
  expect_has(table, "none: one worker\n");
  expect_has(table, "    fc1 ");
  expect_has(table, "90.0 %   96.0 %\n");
  expect_has(table, "   dense ");
  EXPECT_TRUE(table.ends_with("runs/small\n")) << table;
}

TEST(ReportTable, HasNoWordsOfOtherMethods) {
  config::RunOptions options;
  options.method.name = "ddp";
  ordered_json summary = summary_of_one_worker();
  summary["seconds"]["svd"] = 0;
  summary["reducer"]["name"] = "plain";
  summary["reducer"]["vnmse"] = nullptr;
  summary["traffic"] = ordered_json::parse(R"({
    "bytes_per_worker": 1000, "vs_fp32": 1, "vs_bf16": 2,
    "by_purpose": {"gradient": 1000, "sync": 0, "factors": 0, "orders": 0,
                   "metrics": 24},
    "by_phase": {"full": 1000, "ab": 0, "switches": 0}})");
  const std::string table = report_table(options, summary, "runs/small");
  expect_has(table, "87.50 % (loss 0.5000)\n");
  expect_has(table, "  gradients 1.0 kB; metrics, not included: 24 B\n");
  expect_has(table, "2.0 s training: compute 1.0 s, data 0.5 s;");
  for (const char* word : {"merged", "SVD", "sync", "by phase", "switches", "by worker"}) {
    EXPECT_EQ(table.find(word), std::string::npos) << table;
  }
  summary["by_worker"] = ordered_json::parse(R"([
    {"host": "one", "compute": 1, "waiting": 3, "communication": 1},
    {"host": "two", "compute": 4, "waiting": 0, "communication": 1}])");
  summary["slowest_worker"] = 1;
  expect_has(
      report_table(options, summary, "runs/small"),
      "  by worker       compute 1.0 s to 4.0 s (mean 2.5 s), waiting 0.0 s to 3.0 s (mean 1.5 s), "
      "communication 1.0 s to 1.0 s (mean 1.0 s); slowest: worker 1 on two\n");
  options.method.name = "ab";
  summary["traffic"]["by_phase"]["ab"] = 500;
  expect_has(
      report_table(options, summary, "runs/small"), "  by phase        full 1.0 kB, ab 500 B\n");
}

TEST(ReportTable, ShowsSmallSharesOfTraffic) {
  EXPECT_EQ(percent_of_data_parallel(1), "100.0 %");
  EXPECT_EQ(percent_of_data_parallel(0.169), "16.9 %");
  EXPECT_EQ(percent_of_data_parallel(0.001), "0.1 %");
  EXPECT_EQ(percent_of_data_parallel(0.00037), "0.037 %");
}

TEST(ReportTable, OfWhatIsNoSummaryIsDamagedData) {
  ordered_json summary = summary_of_one_worker();
  summary.erase("seconds");
  ordered_json workers = summary_of_one_worker();
  workers["by_worker"] = ordered_json::array();
  workers["slowest_worker"] = 2;
  for (const ordered_json& damaged : {summary, workers, ordered_json::object()}) {
    const std::string what =
        expect_error([&] { report_table({}, damaged, "runs/small"); }, ErrorKind::DamagedData);
    EXPECT_TRUE(what.starts_with("runs/small/summary.json: ")) << what;
  }
}

}  // namespace
}  // namespace abtrain::train
