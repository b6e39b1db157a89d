// What the jobs of a sweep ask Slurm for, beside figures computed by hand.
#include "sweep/slurm_needs.h"

#include "config/config.h"
#include "device/devices.h"
#include "said_log.h"
#include "sweep_files.h"

namespace abtrain::sweep {
namespace {

class SlurmNeedsOf : public testing::SweepFiles {
 protected:
  void SetUp() override {
    folder_.add(
        "configs/small.yaml",
        "workers: 2\ndevice: cpu\nmethod: {name: ddp}\nmodel: {name: mlp, hidden: [16]}\n"
        "data: {name: fashion-mnist, subset: 256, batch_size: 16}\ntrain: {steps: 10}\n");
  }
  std::vector<PointRun> points(const std::string& text) const {
    auto all = runs(read("base: small\noutput: " + (folder_ / "runs") + "\n" + text));
    return all;
  }
  // A finished run of a point, with what it took.
  void finish(const PointRun& run, double train, double evaluate) const {
    const std::string place = run.folder.substr((folder_ / "").size());
    folder_.add(place + "/config.yaml", config::to_yaml(run.options));
    folder_.add(
        place + "/summary.json",
        formatted(
            "{{\"steps\": {}, \"seconds\": {{\"train\": {}, \"evaluate\": {}}}}}",
            run.options.train.steps, train, evaluate));
  }
  SlurmNeeds needs(const std::vector<PointRun>& runs, const NeedsRequest& request = {}) {
    return slurm_needs(runs, request, log_.log());
  }

  SaidLog log_;
};

TEST_F(SlurmNeedsOf, FinishedPointsSayHowLongTheLongestOneTakes) {
  const auto all = points("grid: {train.steps: [100, 50, 200]}\n");
  finish(all[0], 100, 20);  // 1.2 s per step
  finish(all[1], 200, 50);  // 5 s per step: the longest point takes 1000 s
  // 2 x 1000 s and 2 minutes, rounded up to 5 minutes.
  const SlurmNeeds alone = needs(all);
  EXPECT_EQ(alone.minutes, 40);
  EXPECT_NE(alone.minutes_from.find("the slowest of 2 finished points"), std::string::npos);
  EXPECT_EQ(needs(all, {.points_per_job = 3}).minutes, 110);  // 3 x 2120 s = 106 minutes
  EXPECT_EQ(needs(all, {.length = 0.25}).minutes, 140);       // 8120 s = 135.3 minutes
  EXPECT_EQ(needs(all, {.points_per_job = 100}).minutes, 24 * 60);
  EXPECT_EQ(needs(all, {.time = false}).minutes, 0);
  EXPECT_EQ(log_.text(), "");
}

TEST_F(SlurmNeedsOf, ShortPointsGetTenMinutes) {
  const auto all = points("grid: {train.steps: [100]}\nseeds: 2\n");
  finish(all[0], 5, 0);
  EXPECT_EQ(needs(all).minutes, 10);
}

TEST_F(SlurmNeedsOf, TheHeaviestPointIsMeasuredWhereNoneHasFinished) {
  const auto all = points("grid: {train.steps: [10, 30], model.hidden: [[64], [16]]}\n");
  const SlurmNeeds needed = needs(all);
  EXPECT_EQ(needed.minutes, 10);
  EXPECT_NE(needed.minutes_from.find("point 2, measured here"), std::string::npos)
      << needed.minutes_from;
  EXPECT_NE(log_.text().find("point 2 (steps=30,hidden=64)"), std::string::npos) << log_.text();
}

// Ranks that follow from the spectra cannot be planned.
TEST_F(SlurmNeedsOf, MeasuresDenseStepsWhereRanksAreUnknown) {
  const auto all = points(
      "set: {method: {name: ab, rank: {rule: energy, keep: 0.8}}}\n"
      "grid: {train.steps: [60]}\n");
  EXPECT_NE(needs(all).minutes_from.find("measured here"), std::string::npos) << log_.text();
}

TEST_F(SlurmNeedsOf, ADayWhereNoTimeIsKnown) {
  if (!device::cuda_devices().empty()) {
    GTEST_SKIP() << "there is a GPU to measure on";
  }
  for (const char* key : {"device: cuda", "comm: nccl\n  device: auto"}) {
    const auto all = points(formatted("set:\n  {}\nseeds: 2\n", key));
    const SlurmNeeds needed = needs(all);
    EXPECT_TRUE(needed.gpus);
    EXPECT_EQ(needed.minutes, 24 * 60);
  }
  EXPECT_NE(log_.text().find("this machine has none to measure on"), std::string::npos);
  EXPECT_NE(log_.text().find("asks for 24 hours"), std::string::npos);
}

TEST_F(SlurmNeedsOf, MemoryGrowsWithWorkersProcessesAndModel) {
  const NeedsRequest no_time{.time = false};
  const auto gigabytes = [&](const std::string& text) {
    return needs(points(text), no_time).gigabytes;
  };
  // 1 GB for each process, and a little.
  EXPECT_EQ(gigabytes("seeds: 2\n"), 3);
  EXPECT_EQ(gigabytes("grid: {workers: [2, 4]}\n"), 2);  // threads of one process
  EXPECT_EQ(gigabytes("set: {device: cuda}\nseeds: 2\n"), 9);
  // 19.2 million parameters at 16 bytes, twice, for each of two workers: 1.23 GB more.
  EXPECT_EQ(gigabytes("grid: {model.hidden: [[4000, 4000], [16]]}\n"), 4);
}

}  // namespace
}  // namespace abtrain::sweep
