#include "sweep/point_state.h"

#include "config/config.h"
#include "sweep_files.h"

namespace abtrain::sweep {
namespace {

class PointStates : public testing::SweepFiles {
 protected:
  PointRun point() const {
    PointRun run = runs(read("base: base\nseeds: 1\n")).front();
    run.folder = folder_ / "point";
    return run;
  }
  void begin(const config::RunOptions& options) const {
    folder_.add("point/config.yaml", config::to_yaml(options));
  }
};

TEST_F(PointStates, FollowTheFilesOfTheFolder) {
  const PointRun run = point();
  EXPECT_EQ(state_of(run), PointState::Missing);
  begin(run.options);
  EXPECT_EQ(state_of(run), PointState::Started);
  folder_.add("point/failure.json", "");
  EXPECT_EQ(state_of(run), PointState::Failed);
  folder_.add("point/summary.json", "");
  EXPECT_EQ(state_of(run), PointState::Finished);
  EXPECT_EQ(own_state_of(run), PointState::Finished);
}

TEST_F(PointStates, NameAndOutputMayDiffer) {
  const PointRun run = point();
  config::RunOptions moved = run.options;
  moved.name = "other";
  moved.output = "elsewhere";
  begin(moved);
  EXPECT_EQ(state_of(run), PointState::Started);
}

TEST_F(PointStates, AnotherConfigurationIsForeign) {
  const PointRun run = point();
  config::RunOptions changed = run.options;
  changed.seed = 2;
  begin(changed);
  EXPECT_EQ(state_of(run), PointState::Foreign);
  folder_.add("point/config.yaml", "no_such_key: 1\n");
  EXPECT_EQ(state_of(run), PointState::Foreign);
  const std::string what = expect_error([&] { own_state_of(run); }, ErrorKind::Config);
  EXPECT_TRUE(what.starts_with(run.folder)) << what;
}

TEST_F(PointStates, HaveWordsOfTheirOwn) {
  EXPECT_STREQ(name_of(PointState::Missing), "missing");
  EXPECT_STREQ(name_of(PointState::Started), "started");
  EXPECT_STREQ(name_of(PointState::Failed), "failed");
  EXPECT_STREQ(name_of(PointState::Finished), "finished");
  EXPECT_STREQ(name_of(PointState::Foreign), "foreign");
}

TEST_F(PointStates, TheAccuracyIsThatOfTheSummary) {
  const PointRun run = point();
  folder_.add("point/summary.json", R"({"accuracy": 0.75})");
  EXPECT_EQ(score_of(run), "75.00 %");
  folder_.add("point/summary.json", R"({"accuracy": 0.75, "r2": 0.75})");
  EXPECT_EQ(score_of(run), "R² 0.7500");
  folder_.add("point/summary.json", R"({"loss": 1})");
  expect_error([&] { score_of(run); }, ErrorKind::DamagedData);
}

}  // namespace
}  // namespace abtrain::sweep
