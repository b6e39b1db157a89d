// abtrain report on run folders made by hand.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "program.h"
#include "run_folders.h"
#include "small_run.h"

namespace abtrain {
namespace {

using testing::add_run;

TEST(CliReport, PrintsATableOrJson) {
  const TempFolder folder;
  const std::string slow =
      add_run(folder, {.name = "slow", .reducer = "topk", .accuracies = {0.1, 0.9}});
  const std::string fast = add_run(folder, {.name = "fast"});
  const std::string runs = "'" + slow + "' '" + fast + "'";
  const std::string table = output_of("report " + runs + " --target 0.5");
  EXPECT_LT(table.find("fast"), table.find("slow")) << table;
  expect_has(table, "s to 50 %");
  EXPECT_FALSE(contains(table, "\033")) << table;
  const std::string all = " --target 0.5 '" + folder.path() + "'";
  const std::string listed = output_of("report --format json" + all);
  EXPECT_EQ(output_of("report --json" + all), listed);
  const auto parsed = nlohmann::json::parse(listed);
  EXPECT_EQ(parsed["settings"][0]["name"], "fast");
  EXPECT_EQ(parsed["settings"][1]["seconds_to_target"]["median"], 2.0);
}

TEST(CliReport, ReplacesAReportThatBeginsWithTheAnswer) {
  const TempFolder folder;
  const std::string run = add_run(folder, {.name = "fast"});
  const std::string answer =
      "Within 30 s of training (where the runs were trained), fast wins.\n\n";
  for (const char* format : {"md", "txt"}) {
    const std::string file = folder.file(std::string("report.") + format);
    const std::string command = "report '" + run + "' -o '" + file + "'";
    expect_exit(0, command);
    atomic_write(file, answer + content(file));
    expect_exit(0, command);
    EXPECT_FALSE(contains(content(file), "Within"));
    atomic_write(file, answer + "My notes.\n");
    expect_exit(2, command, {"is not a report"});
  }
}

// Computing as measured, bytes as metered over a slow link.
TEST(CliReport, SecondsOverALink) {
  const TempFolder folder;
  expect_exit(0, small_run(folder, "--set method.name=ddp"));
  const auto parsed = nlohmann::json::parse(
      output_of("report --json --bandwidth 100kbit --latency 1us '" + folder.path() + "'"));
  const auto summary = nlohmann::json::parse(content(folder.file("small/summary.json")));
  const auto of = [&](const char* key) { return summary["seconds"][key].get<double>(); };
  const double sent = summary["traffic"]["bytes_per_worker"];
  const double wanted = of("compute") + of("data") + 8 * sent * (1 + 66.0 / 1448) / 100e3;
  EXPECT_NEAR(parsed["settings"][0]["link_seconds"]["mean"].get<double>(), wanted, 0.01 * wanted);
  expect_exit(2, "report --latency 1ms '" + folder.path() + "'", {"--bandwidth"});
}

TEST(CliReport, TheFrontIsMarkedAndChosenRunsAreSorted) {
  const TempFolder folder;
  add_run(folder, {.name = "a", .reducer = "topk", .accuracies = {0.1, 0.9}});
  add_run(folder, {.name = "b", .accuracies = {0.1}, .accuracy = 0.8});
  add_run(folder, {.name = "c", .reducer = "thc", .accuracy = 0.7});
  EXPECT_EQ(
      output_of("report --front '" + folder.path() + "'"),
      "run  steps  seeds  accuracy, %  s trained  MB sent  M parameters\n"
      "a       20      1       90.00*       2.0*     0.0*        0.000*\n"
      "b       10      1       80.00        1.0*     0.0*        0.000\n"
      "c       30      1       70.00        3.0      0.0         0.000\n"
      "\n* best score, or on the front: no other run is as good for "
      "as little\n"
      "\nVerdict\n"
      "  From 10.0 kB sent per worker, b wins with 80.00 % (30.0 points above c before its end); "
      "from 20.0 kB, a wins with 90.00 % (10.0 points above b).\n"
      "  There is only one seed per setting: differences of a few tenths of a "
      "point may be chance.\n"
      "  c is dominated on every axis: a is more accurate, sends less, is no "
      "larger and takes less time.\n");
  EXPECT_EQ(
      output_of(
          "report '" + folder.path() +
          "' --where reducer.name=topk --where=reducer.name=plain --sort bytes "
          "--columns loss,bytes"),
      "run  steps  seeds  MB sent\n"
      "b       10      1      0.0\n"
      "a       20      1      0.0\n");
}

TEST(CliReport, TheEndingOfTheFileDecidesTheFormat) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  const auto written = [&](const std::string& name, const std::string& more) {
    EXPECT_EQ(output_of("report '" + place + "' -o '" + folder / name + "' " + more), "");
    const std::string text = content(folder / name);
    return text.substr(0, text.find('\n'));
  };
  expect_has(written("r.md", ""), "| run |");
  expect_has(written("r.csv", ""), "name,runs,");
  EXPECT_EQ(written("r.json", ""), "{");
  expect_has(written("r.txt", ""), "run  seeds  accuracy, %");
  expect_has(written("r.txt", "--format csv"), "name,runs,");
  EXPECT_EQ(
      written("r.csv", "--columns bytes"),
      "name,runs,finished,data,model,method,steps,state,slowest,bytes,bytes_sd\r");
}

TEST(CliReport, BrokenAndUnfinishedRunsAreNamed) {
  const TempFolder folder;
  add_run(folder, {.name = "a"});
  add_run(folder, {.name = "b", .finished = false});
  add_run(folder, {.name = "c"});
  folder.add("c/summary.json", "{\n");
  const std::string arguments = "report '" + folder.path() + "'";
  EXPECT_EQ(
      expect_exit(0, arguments),
      folder / "c/summary.json" +
          ":2: error: expected a JSON object, but this is damaged or cut off; skipped\n" +
          folder / "b" + ": stopped at step 30\n");
  expect_has(output_of(arguments), "0 of 1");
}

TEST(CliReport, DamagedMetricsAreNamed) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  folder.add("a/metrics.jsonl", "{}\n{\n");
  expect_exit(65, "report '" + place + "'", {"a/metrics.jsonl:1: error"});
  folder.add("a/metrics.jsonl", "{\"event\": \"step\"}\n{\n");
  expect_exit(65, "report '" + place + "'", {"a/metrics.jsonl:2: error"});
}

// Each @ stands for the folder of a run.
class CliBadReport : public ::testing::TestWithParam<BadUse> {};

TEST_P(CliBadReport, EndsWithItsCodeAndSaysWhy) {
  const TempFolder folder;
  expect_refused(GetParam(), "report ", add_run(folder, {.name = "a"}));
}

INSTANTIATE_TEST_SUITE_P(
    All, CliBadReport,
    ::testing::Values(
        BadUse{"Nothing", "", "run is required"},
        BadUse{"NoFolder", "'@' '@/b'", "/a/b: expected a run", 66},
        BadUse{"NotThere", "'@' '@/b'", "it does not exist", 66},
        BadUse{"Format", "'@' --format xml", "markdown"},
        BadUse{"Column", "'@' --columns byte", "bytes"},
        BadUse{"Where", "'@' --where method.name=ab", "the values there are: ddp", 66},
        BadUse{"WhereKey", "'@' --where methd.name=ab", "method"},
        BadUse{"Sort", "'@' --sort byte", "bytes"},
        BadUse{"SortTarget", "'@' --sort bytes_to_target", "needs a --target"},
        BadUse{"NoPlace", "'@' -o '@/b/c.csv'", "/b/c.csv", 74},
        BadUse{"FrontColumns", "'@' --front --columns loss", "--front"},
        BadUse{"FrontCsv", "'@' --front --format csv", "no marks"},
        BadUse{"Percent", "'@' --target 86", "--target"}),
    kCaseName);

}  // namespace
}  // namespace abtrain
