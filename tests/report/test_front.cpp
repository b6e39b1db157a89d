#include "report/front.h"

#include <gtest/gtest.h>

#include "base/mapped.h"
#include "base/text.h"
#include "report/formats.h"
#include "report/marked_settings.h"
#include "run_folders.h"

namespace abtrain::report {
namespace {

using testing::add_run;
using Points = std::vector<std::optional<FrontPoint>>;

TEST(Front, APointIsBeatenByWhatIsNoWorseAndSomewhereBetter) {
  EXPECT_TRUE(on_front({}, {}).empty());
  EXPECT_EQ(on_front(Points{std::nullopt}, {{0}}), std::vector<bool>{false});
  const Points points = {FrontPoint{0.9, 10},  FrontPoint{0.8, 2},
                         FrontPoint{0.8, 2},    // its equal does not beat it
                         FrontPoint{0.8, 3},    // as accurate, but dearer
                         FrontPoint{0.7, 2},    // as dear, but less accurate
                         FrontPoint{0.85, 11},  // beaten in both
                         std::nullopt,         FrontPoint{0.1, 1}};
  EXPECT_EQ(
      on_front(points, {{0, 1, 2, 3, 4, 5, 6, 7}}),
      (std::vector<bool>{true, true, true, false, false, false, false, true}));
}

// Two schemes at two lengths with two seeds, and a run that has not ended. A
// step takes 0.1 s and sends 1000 bytes; there are ten per accuracy.
class FrontOfRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto add = [&](const char* name, const char* reducer, int steps, double accuracy,
                         double stored) {
      for (const int seed : {1, 2}) {
        add_run(
            folder_,
            {.name = formatted("{}_{}steps_{}", name, steps, seed),
             .seed = seed,
             .reducer = reducer,
             .accuracies = std::vector<double>(static_cast<std::size_t>(steps) / 10, accuracy),
             .accuracy = accuracy + 0.01 * seed,
             .config_steps = steps,
             .stored = stored});
      }
    };
    add("thc", "thc", 10, 0.6, 100);
    add("thc", "thc", 40, 0.7, 100);
    add("plain", "plain", 20, 0.5, 500);
    add("plain", "plain", 40, 0.8, 500);
    add_run(folder_, {.name = "late_1", .reducer = "topk", .accuracies = {0.9}, .finished = false});
    comparison_ = compare({folder_.path()}, {});
  }

  // The names of the settings that the column marks.
  std::string marked(std::size_t column) const {
    // They are sorted by accuracy.
    return join(marked_by(front_columns({})[column], comparison_.settings), " ");
  }

  TempFolder folder_;
  Comparison comparison_;
};

TEST_F(FrontOfRuns, LengthsOfOneConfigurationAreOneLine) {
  std::vector<std::string> lines;
  for (const FrontLine& line : front_lines(comparison_.settings)) {
    lines.push_back(line.name + ":");
    for (const std::size_t i : line.settings) {
      lines.push_back(comparison_.settings[i].name);
    }
  }
  EXPECT_EQ(
      join(lines, " "),
      "plain: plain_40steps plain_20steps thc: thc_40steps thc_10steps late: "
      "late");
}

TEST_F(FrontOfRuns, MeansOverTheSeedsAreMarked) {
  const auto columns = front_columns({});
  ASSERT_EQ(columns.size(), 7U);
  EXPECT_EQ(columns[1].key, "bits_per_byte");
  EXPECT_EQ(columns[2].key, "r2");
  EXPECT_EQ(columns[3].key, "train_seconds");
  EXPECT_EQ(columns[4].key, "bytes");
  EXPECT_EQ(columns[5].key, "parameters");
  EXPECT_EQ(marked(0), "plain_40steps");
  EXPECT_EQ(marked(1), "");
  EXPECT_EQ(marked(2), "");
  EXPECT_EQ(marked(3), "plain_40steps thc_10steps");
  EXPECT_EQ(marked(4), "plain_40steps thc_10steps");
  EXPECT_EQ(marked(5), "plain_40steps thc_40steps");
  EXPECT_EQ(front_columns(0.7).back().key, "seconds_to_target");
}

TEST_F(FrontOfRuns, TheTableSaysWhatAMarkMeans) {
  const std::string table = as_table(comparison_, front_columns({}), false);
  const auto lines = split_text(table, '\n');
  EXPECT_NE(lines[0].find("M parameters"), std::string::npos) << table;
  EXPECT_NE(table.find("\n* best score, or on the front: "), std::string::npos) << table;
  EXPECT_NE(
      as_table(comparison_, choose_columns("default", {}), false).find("\n* best of the column"),
      std::string::npos);
}

TEST(Front, LinesOfUnclearNamesHaveDistinctOnes) {
  const auto names = [](const std::vector<std::string>& runs) {
    const TempFolder folder;
    int steps = 0;
    for (const std::string& name : runs) {
      add_run(folder, {.name = name, .config_steps = steps += 10});
    }
    const auto lines = front_lines(compare({folder.path()}, {}).settings);
    return join(mapped(lines, &FrontLine::name), " | ");
  };
  EXPECT_EQ(names({"r4_200", "r4_1200"}), "r4");
  EXPECT_EQ(names({"lr1_400", "lr1_4000"}), "lr1");
  EXPECT_EQ(names({"r4", "r4_long"}), "r4");
  EXPECT_EQ(names({"alone_7"}), "alone_7");
  EXPECT_EQ(names({"long", "short"}), "long, ...");
}

TEST(Front, SettingsOfOneConfigurationAndLengthAreNoLine) {
  const TempFolder folder;
  for (const std::string place : {"fast", "slow"}) {
    add_run(folder, {.name = place, .config_steps = 10});
  }
  EXPECT_EQ(front_lines(compare({folder.path()}, {}).settings).size(), 2U);
}

}  // namespace
}  // namespace abtrain::report
