// abtrain report on run folders made by hand.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

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
  const Outcome table = run("report " + runs + " --target 0.5", Stream::Out);
  ASSERT_EQ(table.exit_code, 0);
  EXPECT_LT(table.text.find("fast"), table.text.find("slow")) << table.text;
  EXPECT_TRUE(contains(table.text, "s to 50 %")) << table.text;
  EXPECT_FALSE(contains(table.text, "\033")) << table.text;
  const Outcome listed =
      run("report --format json --target 0.5 '" + folder.path() + "'", Stream::Out);
  ASSERT_EQ(listed.exit_code, 0);
  EXPECT_EQ(
      run("report --json --target 0.5 '" + folder.path() + "'", Stream::Out).text, listed.text);
  const auto parsed = nlohmann::json::parse(listed.text);
  EXPECT_EQ(parsed["settings"][0]["name"], "fast");
  EXPECT_EQ(parsed["settings"][1]["seconds_to_target"]["median"], 2.0);
}

// Computing as measured, bytes as metered over a slow link.
TEST(CliReport, SecondsOverALink) {
  const TempFolder folder;
  ASSERT_EQ(run(small_run(folder, "--set method.name=ddp"), Stream::Error).exit_code, 0);
  const Outcome outcome =
      run("report --json --bandwidth 100kbit --latency 1us '" + folder.path() + "'", Stream::Out);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  const auto summary = nlohmann::json::parse(content(folder.file("small/summary.json")));
  const auto of = [&](const char* key) { return summary["seconds"][key].get<double>(); };
  const double sent = summary["traffic"]["bytes_per_worker"];
  const double wanted = of("compute") + of("data") + 8 * sent * (1 + 66.0 / 1448) / 100e3;
  const auto parsed = nlohmann::json::parse(outcome.text);
  EXPECT_NEAR(parsed["settings"][0]["link_seconds"]["mean"].get<double>(), wanted, 0.01 * wanted);
  const Outcome none = run("report --latency 1ms '" + folder.path() + "'", Stream::Error);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.text, "--bandwidth")) << none.text;
}

TEST(CliReport, TheFrontIsMarked) {
  const TempFolder folder;
  add_run(folder, {.name = "a", .reducer = "topk", .accuracies = {0.1, 0.9}});
  add_run(folder, {.name = "b", .accuracies = {0.1}, .accuracy = 0.8});
  add_run(folder, {.name = "c", .reducer = "thc", .accuracy = 0.7});
  const Outcome table = run("report --front '" + folder.path() + "'", Stream::Out);
  EXPECT_EQ(
      table.text,
      "run  steps  seeds  accuracy, %  s trained  MB sent  M parameters\n"
      "a       20      1       90.00*       2.0*     0.0*        0.000*\n"
      "b       10      1       80.00        1.0*     0.0*        0.000\n"
      "c       30      1       70.00        3.0      0.0         0.000\n"
      "\n* best score, or on the front: no other run is as good for "
      "as little\n"
      "\nVerdict\n"
      "  From 10.0 kB sent per worker, b wins with 80.00 %; from 20.0 kB, a "
      "wins with 90.00 % (10.0 points above b).\n"
      "  There is only one seed per setting: differences of a few tenths of a "
      "point may be chance.\n"
      "  c is dominated on every axis: a is more accurate, sends less, is no "
      "larger and takes less time.\n");
}

TEST(CliReport, ChosenRunsAreSorted) {
  const TempFolder folder;
  add_run(folder, {.name = "a", .reducer = "topk", .accuracies = {0.1, 0.9}});
  add_run(folder, {.name = "b", .accuracies = {0.1}, .accuracy = 0.8});
  add_run(folder, {.name = "c", .reducer = "thc", .accuracy = 0.7});
  const Outcome table =
      run("report '" + folder.path() +
              "' --where reducer.name=topk --where=reducer.name=plain --sort bytes "
              "--columns loss,bytes",
          Stream::Out);
  EXPECT_EQ(
      table.text,
      "run  steps  seeds  MB sent\n"
      "b       10      1      0.0\n"
      "a       20      1      0.0\n");
}

TEST(CliReport, TheEndingOfTheFileDecidesTheFormat) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  const auto written = [&](const std::string& name, const std::string& more) {
    const Outcome outcome =
        run("report '" + place + "' -o '" + folder / name + "' " + more, Stream::Out);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.text, "");
    std::ifstream file(folder / name);
    std::string line;
    std::getline(file, line);
    return line;
  };
  EXPECT_TRUE(contains(written("r.md", ""), "| run |"));
  EXPECT_TRUE(contains(written("r.csv", ""), "name,runs,"));
  EXPECT_EQ(written("r.json", ""), "{");
  EXPECT_TRUE(contains(written("r.txt", ""), "run  seeds  accuracy, %"));
  EXPECT_TRUE(contains(written("r.txt", "--format csv"), "name,runs,"));
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
  const Outcome outcome = run(arguments, Stream::Error);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(
      outcome.text, folder / "c/summary.json" +
                        ":2: error: expected a JSON object, but this is damaged or cut off; "
                        "skipped\n" +
                        folder / "b" + ": stopped at step 30\n");
  EXPECT_TRUE(contains(run(arguments, Stream::Out).text, "0 of 1"));
}

struct BadReport {
  const char* name;
  const char* arguments;  // @ stands for the run's folder
  const char* metrics;
  int exit_code;
  const char* says;
};

class CliBadReport : public ::testing::TestWithParam<BadReport> {};

TEST_P(CliBadReport, EndsWithItsCodeAndSaysWhy) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  if (*GetParam().metrics != '\0') {
    folder.add("a/metrics.jsonl", GetParam().metrics);
  }
  std::string arguments = GetParam().arguments;
  for (std::size_t at; (at = arguments.find('@')) != std::string::npos;) {
    arguments.replace(at, 1, place);
  }
  const Outcome outcome = run("report " + arguments, Stream::Error);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, GetParam().says)) << outcome.text;
  EXPECT_FALSE(contains(outcome.text, "internal error")) << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(
    All, CliBadReport,
    ::testing::Values(
        BadReport{"Nothing", "", "", 2, "run is required"},
        BadReport{"NoFolder", "'@' '@/b'", "", 66, "/a/b: expected a run"},
        BadReport{"NotThere", "'@' '@/b'", "", 66, "it does not exist"},
        BadReport{"Format", "'@' --format xml", "", 2, "markdown"},
        BadReport{"Column", "'@' --columns byte", "", 2, "bytes"},
        BadReport{"Where", "'@' --where method.name=ab", "", 66, "the values there are: ddp"},
        BadReport{"WhereKey", "'@' --where methd.name=ab", "", 2, "method"},
        BadReport{"Sort", "'@' --sort byte", "", 2, "bytes"},
        BadReport{"SortTarget", "'@' --sort bytes_to_target", "", 2, "needs a --target"},
        BadReport{"NoPlace", "'@' -o '@/b/c.csv'", "", 74, "/b/c.csv"},
        BadReport{"FrontColumns", "'@' --front --columns loss", "", 2, "--front"},
        BadReport{"FrontCsv", "'@' --front --format csv", "", 2, "no marks"},
        BadReport{"Percent", "'@' --target 86", "", 2, "--target"},
        BadReport{"Damage", "'@'", "{}\n{\n", 65, "a/metrics.jsonl:1: error"},
        BadReport{"CutLine", "'@'", "{\"event\": \"step\"}\n{\n", 65, "a/metrics.jsonl:2: error"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace abtrain
