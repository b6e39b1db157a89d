#include "sweep/halving.h"

#include <filesystem>

#include "base/files.h"
#include "config/config.h"
#include "sweep_files.h"

namespace abtrain::sweep {
namespace {

constexpr const char* kRivals =
    "halving:\n"
    "  pilot: {data.validation: 100}\n"
    "  rivals:\n"
    "    one:\n"
    "      why: first\n"
    "      set: {method.name: ddp, train.steps: 800}\n"
    "      tune: [{}, {optimizer.lr: 0.5}, {optimizer.lr: 0.25}]\n"
    "    two:\n"
    "      set: {train.steps: 80, optimizer.lr: 0.1}\n"
    "      tune: [{}, {optimizer.lr: 0.2}, {optimizer.lr: 0.3}]\n"
    "  left_out: {three: \"needs a GPU\"}\n"
    "seeds: [4, 9]\n";

class HalvingOf : public testing::SweepFiles {
 protected:
  // `seconds`: of runs at full length; 0: none are given.
  Sweep read_rivals(double seconds = 0) const {
    Sweep sweep = read("base: base\noutput: " + folder_.path() + "\nname: it\n" + kRivals);
    sweep.halving->seconds = seconds;
    return sweep;
  }
  Round round(std::size_t index, double seconds = 0) const {
    return round_of(read_rivals(seconds), index);
  }
  // Writes what a pilot leaves: `quality` by the held-out images, and a test
  // accuracy that would choose otherwise.
  void finish(const PointRun& run, double quality) const {
    make_folders(run.folder);
    atomic_write(run.folder + "/config.yaml", config::to_yaml(run.options));
    atomic_write(run.folder + "/summary.json", "{\"seconds\": {\"train\": 2.5}}");
    atomic_write(
        run.folder + "/metrics.jsonl",
        formatted(
            R"({{"event":"evaluate","accuracy":0.1,"validation_accuracy":0.99,"validation_loss":1}}
{{"event":"evaluate","accuracy":{},"validation_accuracy":{},"validation_loss":1}}
{{"event":"end"}}
)",
            1 - quality, quality));
  }
  void diverge(const PointRun& run) const {
    make_folders(run.folder);
    atomic_write(run.folder + "/config.yaml", config::to_yaml(run.options));
    atomic_write(run.folder + "/failure.json", "{\"exit_code\": 70}");
  }
};

TEST_F(HalvingOf, RoundsAndLengths) {
  EXPECT_EQ(rounds_of(1), 1U);
  EXPECT_EQ(length_of(1, 0), 1);
  ASSERT_EQ(rounds_of(3), 3U);
  EXPECT_EQ(settings_in(3, 1), 2U);
  EXPECT_EQ(length_of(3, 0), 0.25);
  EXPECT_EQ(length_of(3, 1), 0.5);
  EXPECT_EQ(length_of(3, 2), 1);
  EXPECT_EQ(steps_in(1001, 3, 0), 250);
  EXPECT_EQ(steps_in(3, 3, 0), 1);
  ASSERT_EQ(rounds_of(16), 5U);
  EXPECT_EQ(length_of(16, 0), 0.0625);
  EXPECT_EQ(length_of(16, 3), 0.5);
}

TEST_F(HalvingOf, WorkIsThatOfAllRounds) {
  // Three pilots of a quarter, two of a half, and the seeds.
  EXPECT_EQ(work_of(3, 2).runs, 7U);
  EXPECT_EQ(work_of(3, 2).lengths, 3 * 0.25 + 2 * 0.5 + 2);
  EXPECT_EQ(work_of(1, 4).runs, 4U);
  EXPECT_EQ(work_of(1, 4).lengths, 4);
}

TEST_F(HalvingOf, TheFirstOfEqualsStays) {
  EXPECT_EQ(better_half({4, 7, 2}, {0.5, 0.5, 0.5}), (std::vector<std::size_t>{4, 7}));
  EXPECT_EQ(better_half({4, 7}, {0.1, 0.2}), (std::vector<std::size_t>{7}));
}

TEST_F(HalvingOf, PilotsAreShortAndHaveOneSeed) {
  const auto runs = this->runs(round(0).sweep);
  ASSERT_EQ(runs.size(), 6U);
  EXPECT_EQ(runs[1].label, "one,setting=2");
  EXPECT_EQ(runs[1].options.train.steps, 200);
  EXPECT_EQ(runs[1].options.optimizer.lr, 0.5);
  EXPECT_EQ(runs[1].options.data.validation, 100);
  EXPECT_EQ(runs[3].options.optimizer.lr, 0.1);
  EXPECT_EQ(runs[4].options.optimizer.lr, 0.2);
  EXPECT_EQ(runs[3].options.train.steps, 20);
  EXPECT_TRUE(runs[0].folder.starts_with(folder_ / "it/pilots/1/"));
}

// Each pilot took 2.5 s, those of a rival that diverged do not count.
TEST_F(HalvingOf, StepsFollowFromWhatThePilotsTook) {
  auto runs = this->runs(round(0, 20).sweep);
  for (const PointRun& run : runs) {
    run.label == "one,setting=1" ? diverge(run) : finish(run, 0.5);
  }
  const Round second = round(1, 20);
  EXPECT_EQ(second.rivals[0].steps, 1600);  // 200 steps took 2.5 s
  EXPECT_EQ(second.rivals[1].steps, 160);
  runs = this->runs(second.sweep);
  EXPECT_EQ(runs[0].options.train.steps, 800);
  EXPECT_EQ(runs[2].options.train.steps, 80);
  for (const PointRun& run : runs) {
    finish(run, 0.5);
  }
  runs = this->runs(round(2, 20).sweep);
  EXPECT_EQ(runs[0].options.train.steps, 6400);  // 800 steps took 2.5 s
  EXPECT_EQ(runs[1].options.train.steps, 640);
}

TEST_F(HalvingOf, ReadsTimeAndLink) {
  const Sweep sweep = read(
      "base: base\nhalving:\n  seconds: 30\n  bandwidth: 100Mbit\n  latency: "
      "1ms\n  nodes: 2\n  rivals:\n    a: {set: {train.steps: 8}, tune: "
      "[{}]}\n");
  EXPECT_EQ(sweep.halving->seconds, 30);
  EXPECT_EQ(sweep.halving->link.bandwidth, "100Mbit");
  EXPECT_EQ(sweep.halving->link.latency, "1ms");
  EXPECT_EQ(sweep.halving->link.nodes, 2);
}

TEST_F(HalvingOf, TheBetterHalfGoesOnAndTheBestIsTrainedInFull) {
  auto runs = this->runs(round(0).sweep);
  for (const std::size_t i : {0, 1, 3, 4}) {
    finish(runs[i], i % 3 == 0 ? 0.6 : 0.7);
  }
  EXPECT_THROW(round(1), Error);  // a pilot of each rival is missing
  diverge(runs[2]);
  finish(runs[5], 0.65);
  runs = this->runs(round(1).sweep);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].label, "one,setting=2");
  EXPECT_EQ(runs[1].label, "one,setting=1");
  EXPECT_EQ(runs[3].label, "two,setting=3");
  EXPECT_EQ(runs[0].options.train.steps, 400);
  for (const PointRun& run : runs) {
    finish(run, run.label == "one,setting=1" ? 0.9 : 0.8);
  }
  const Round last = round(2);
  runs = this->runs(last.sweep);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].label, "one,seed=4");
  EXPECT_EQ(runs[1].label, "two,seed=4");
  EXPECT_EQ(runs[2].options.seed, 9U);
  EXPECT_EQ(runs[3].label, "two,seed=9");
  EXPECT_EQ(runs[0].options.train.steps, 800);
  EXPECT_EQ(runs[0].options.optimizer.lr, 1e-3);
  EXPECT_EQ(runs[0].options.data.validation, 0);
  EXPECT_EQ(runs[3].options.optimizer.lr, 0.2);

  write_tuning(read_rivals(), last);
  const std::string tuning = read_file(folder_ / "it/tuning.json", kMaxText);
  EXPECT_NE(tuning.find("\"chosen\": \"optimizer.lr: 0.2\""), std::string::npos) << tuning;
  EXPECT_NE(tuning.find("\"pilot_seconds\": 10.0"), std::string::npos);
  EXPECT_NE(tuning.find("needs a GPU"), std::string::npos);
}

TEST_F(HalvingOf, RivalsAreTunedEqually) {
  EXPECT_NE(
      fault_of("base: base\nhalving:\n  rivals:\n"
               "    a: {set: {train.steps: 8}, tune: [{}, {seed: 2}]}\n"
               "    b: {set: {train.steps: 8}, tune: [{}]}\n")
          .find("expected as many settings as a has, 2"),
      std::string::npos);
  EXPECT_NE(
      fault_of("base: base\nhalving:\n  rivals:\n    a: {tune: [{}]}\n")
          .find("expected train.steps"),
      std::string::npos);
  EXPECT_NE(
      fault_of("base: base\ngrid: {workers: [2]}\nhalving:\n  rivals:\n"
               "    a: {set: {train.steps: 8}, tune: [{}]}\n")
          .find("does not go with halving"),
      std::string::npos);
}

}  // namespace
}  // namespace abtrain::sweep
