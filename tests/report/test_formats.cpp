#include "report/formats.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "report/html_report.h"
#include "report/page_assets.h"
#include "run_folders.h"

namespace abtrain::report {
namespace {

using testing::add_run;

// thc of two seeds, a plain run, and one that has not ended.
class Formats : public ::testing::Test {
 protected:
  void SetUp() override {
    add_run(
        folder_,
        {.name = "t_1", .seed = 1, .reducer = "thc", .accuracies = {0.7, 0.8}, .accuracy = 0.8});
    add_run(
        folder_,
        {.name = "t_2", .seed = 2, .reducer = "thc", .accuracies = {0.7, 0.9}, .accuracy = 0.9});
    add_run(folder_, {.name = "p|q,", .seed = 1, .accuracies = {0.85}, .accuracy = 0.85});
    add_run(folder_, {.name = "late_1", .reducer = "topk", .accuracies = {0.1}, .finished = false});
    folder_.add("broken/config.yaml", "");
    comparison_ = compare({folder_.path()}, 0.82);
    columns_ = choose_columns("accuracy,bytes,seconds_to_target,vnmse", 0.82);
  }

  TempFolder folder_;
  Comparison comparison_;
  std::vector<Column> columns_;
};

TEST_F(Formats, TheTableIsAlignedAndMarksTheBest) {
  EXPECT_EQ(
      as_table(comparison_, columns_, false),
      "run   steps  state                seeds   accuracy, %  MB sent"
      "              s to 82 %\n"
      "p|q,     10  finished                 1         85.00      0.0"
      "                   1.0*\n"
      "t        20  finished                 2  85.00 ± 7.07      0.0"
      "  not reached (1 of 2)\n"
      "late      -  stopped at step 10  0 of 1             -        -"
      "  not reached (0 of 1)\n"
      "\n* best of the column; ± standard deviation over the seeds\n");
}

TEST_F(Formats, ABoldCellKeepsItsWidth) {
  std::string bold = as_table(comparison_, columns_, true);
  EXPECT_NE(bold.find("\033[1m"), std::string::npos);
  for (const std::string code : {"\033[1m", "\033[0m"}) {
    for (std::size_t at; (at = bold.find(code)) != std::string::npos;) {
      bold.erase(at, code.size());
    }
  }
  EXPECT_EQ(bold, as_table(comparison_, columns_, false));
}

TEST_F(Formats, MarkdownEscapesAndIsBold) {
  const auto lines = split_text(as_markdown(comparison_, columns_), '\n');
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[0], "| run | steps | state | seeds | accuracy, % | MB sent | s to 82 % |");
  EXPECT_EQ(lines[1], "| --- | ---: | --- | ---: | ---: | ---: | ---: |");
  EXPECT_EQ(lines[2], "| p\\|q, | 10 | finished | 1 | 85.00 | 0.0 | **1.0** |");
  EXPECT_EQ(
      lines[4],
      "| late | - | stopped at step 10 | 0 of 1 | - | - | not reached (0 of "
      "1) |");
}

TEST_F(Formats, CsvHasPlainNumbersInFull) {
  const auto lines = split_text(as_csv(comparison_, columns_), '\n');
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(
      lines[0],
      "name,runs,finished,data,model,method,steps,state,slowest,"
      "accuracy,accuracy_sd,bytes,bytes_sd,"
      "seconds_to_target,seconds_to_target_sd,vnmse,vnmse_sd,reducer.name\r");
  const std::string traits = "fashion-mnist,mlp,ddp,";
  EXPECT_EQ(lines[1], "\"p|q,\",1,1," + traits + "10,finished,,0.85,,10000.0,,1.0,,,,plain\r");
  EXPECT_EQ(
      lines[2], "t,2,2," + traits +
                    "20,finished,,0.8500000000000001,0.07071067811865474,20000.0,0.0,"
                    "inf,,,,thc\r");
  EXPECT_EQ(lines[3], "late,1,0," + traits + ",stopped at step 10,,,,,,inf,,,,topk\r");
}

TEST_F(Formats, JsonHasEveryRun) {
  const auto json = nlohmann::json::parse(as_json(comparison_, columns_));
  EXPECT_EQ(json["target"], 0.82);
  ASSERT_EQ(json["settings"].size(), 3U);
  const auto& thc = json["settings"][1];
  EXPECT_EQ(thc["name"], "t");
  EXPECT_EQ(thc["seeds"], (std::vector<int>{1, 2}));
  EXPECT_EQ(thc["runs"][1], folder_ / "t_2");
  EXPECT_EQ(thc["config"]["reducer.name"], "thc");
  EXPECT_EQ(thc["accuracy"]["values"], (std::vector<double>{0.8, 0.9}));
  EXPECT_DOUBLE_EQ(thc["accuracy"]["mean"], 0.85);
  EXPECT_TRUE(thc["seconds_to_target"]["median"].is_null());
  EXPECT_EQ(thc["seconds_to_target"]["values"][1], 2.0);
  EXPECT_EQ(json["settings"][0]["seconds_to_target"]["best"], true);
  EXPECT_EQ(json["settings"][2]["finished"], 0);
  EXPECT_EQ(thc["states"], (std::vector<std::string>(2, "finished")));
  EXPECT_EQ(thc["data"], "fashion-mnist");
  EXPECT_EQ(thc["steps"], "20");
  ASSERT_EQ(json["unfinished"].size(), 1U);
  const auto& late = json["unfinished"][0];
  EXPECT_EQ(late["run"], folder_ / "late_1");
  EXPECT_EQ(late["state"], "stopped");
  EXPECT_EQ(late["step"], 10);
  EXPECT_TRUE(late["steps"].is_null());
  EXPECT_EQ(late["message"], "stopped at step 10");
  EXPECT_EQ(json["skipped"].size(), 1U);
}

// The page's data block, as its script reads it.
nlohmann::json data_of(const std::string& page) {
  const std::string mark = "id=\"data\">";
  const std::size_t begin = page.find(mark) + mark.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST_F(Formats, HtmlHasItsPartsAndItsData) {
  std::string page;
  try {
    page = as_html(comparison_, columns_, "now");
  } catch (const Error& error) {  // a build without plotly.js
    EXPECT_NE(std::string(error.what()).find("ABTRAIN_PLOTLY"), std::string::npos);
    return;
  }
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0U);
  EXPECT_NE(page.find(page_script()), std::string::npos);
  EXPECT_NE(page.find(page_style()), std::string::npos);
  EXPECT_NE(page.find("Licensed under the MIT license"), std::string::npos);
  const auto data = data_of(page);
  EXPECT_EQ(data["made"], "now");
  ASSERT_EQ(data["runs"].size(), 4U);
  EXPECT_EQ(data["runs"][0]["curve"]["seconds"], std::vector<double>{1});
  EXPECT_EQ(data["columns"].size(), 3U);  // none has a vNMSE
  EXPECT_EQ(data["columns"][0]["cells"][1]["text"], "85.00 ± 7.07");
  EXPECT_EQ(data["mark"], "best of the column");
  EXPECT_EQ(data["traits"][0]["key"], "steps");
  EXPECT_EQ(data["settings"][2]["traits"][1], "stopped at step 10");
  const auto& front = data["front"];
  EXPECT_EQ(front["lines"].size(), 3U);
  EXPECT_EQ(front["scores"][1]["low"], 0.8);
  EXPECT_EQ(front["scores"][1]["mean"], 0.85);
  EXPECT_EQ(front["scores"][1]["high"], 0.9);
  EXPECT_TRUE(front["scores"][2].is_null());
  ASSERT_EQ(front["costs"].size(), 3U);
  const auto& seconds = front["costs"][0];
  EXPECT_EQ(seconds["key"], "train_seconds");
  EXPECT_EQ(seconds["points"][0]["value"], 1.0);
  EXPECT_EQ(seconds["points"][0]["in_all"], true);
  EXPECT_EQ(seconds["points"][1]["in_line"], true);
  EXPECT_TRUE(seconds["points"][2].is_null());
}

TEST(Html, LongCurvesAreThinnedAndNamesCannotEndTheScript) {
  const TempFolder folder;
  std::vector<double> accuracies(1201);
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    accuracies[i] = static_cast<double>(i) / 1200;
  }
  const std::string name = "a<script><!--";
  add_run(folder, {.name = name, .accuracies = accuracies});
  const auto comparison = compare({folder.path()}, {});
  std::string page;
  try {
    page = as_html(comparison, choose_columns("default", {}), "now");
  } catch (const Error&) {
    GTEST_SKIP() << "a build without plotly.js";
  }
  EXPECT_EQ(page.find(name), std::string::npos);
  const auto data = data_of(page);
  EXPECT_EQ(data["runs"][0]["name"], name);
  const auto& steps = data["runs"][0]["curve"]["step"];
  ASSERT_EQ(steps.size(), 500U);
  EXPECT_EQ(steps.front(), 10);
  EXPECT_EQ(steps.back(), 12010);
}

}  // namespace
}  // namespace abtrain::report
