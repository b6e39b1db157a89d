#include "train/ledger.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "comm/run_workers.h"
#include "comm/share.h"
#include "error_of.h"

namespace abtrain::train {
namespace {

using comm::Purpose;
using nlohmann::ordered_json;

const WorkerFigures kCounts{
    .seconds = {.svd = 1, .data = 2},
    .reducer =
        {.encode = 0.5, .collective = 0.25, .decode = 0.125, .vnmse_sum = 3, .vnmse_count = 4},
    .traffic = {}};

// Some traffic in both phases, and an evaluation.
void train_a_bit(Ledger& ledger) {
  comm::TrafficMeter& meter = ledger.meter();
  ledger.count(&TrafficSplit::full_phase, [&] {
    meter.count("world", Purpose::Gradient, 1000);
    meter.count("world", Purpose::Metrics, 7);
  });
  ledger.count(&TrafficSplit::switches, [&] {
    meter.count("world", Purpose::Factors, 200);
    meter.count("world", Purpose::Sync, 300);
  });
  ledger.count(&TrafficSplit::ab_phase, [&] {
    meter.count("group", Purpose::Gradient, 40);
    meter.count("group", Purpose::Orders, 5);
  });
  meter.count_seconds("world", Purpose::Gradient, 0.25);
  const Ledger::Pause pause = ledger.begin_pause();
  meter.count_seconds("world", Purpose::Metrics, 8);
  ledger.end_pause(pause, &TimeSplit::evaluate);
}

void expect_figures_of_a_bit(const WorkerFigures& f) {
  EXPECT_EQ(f.traffic.gradient, 1040);
  EXPECT_EQ(f.traffic.factors, 200);
  EXPECT_EQ(f.traffic.sync, 300);
  EXPECT_EQ(f.traffic.orders, 5);
  EXPECT_EQ(f.traffic.metrics, 7);
  EXPECT_EQ(f.traffic.total(), 1545);
  EXPECT_EQ(f.traffic.inside_groups, 45);
  EXPECT_EQ(f.traffic.between_groups, 1500);
  EXPECT_EQ(f.traffic.full_phase, 1000);
  EXPECT_EQ(f.traffic.switches, 500);
  EXPECT_EQ(f.traffic.ab_phase, 45);
  EXPECT_EQ(f.seconds.communication, 0.25);
  EXPECT_EQ(f.seconds.svd, 1);
  EXPECT_EQ(f.seconds.data, 2);
  EXPECT_DOUBLE_EQ(f.seconds.compute, f.seconds.train - 3.25);
  EXPECT_EQ(f.reducer.encode, 0.5);
  EXPECT_EQ(f.reducer.collective, 0.25);
  EXPECT_EQ(f.reducer.decode, 0.125);
  EXPECT_EQ(f.reducer.vnmse_sum, 3);
  EXPECT_EQ(f.reducer.vnmse_count, 4);
}

TEST(Ledger, SplitsBytesAndSeconds) {
  Ledger ledger;
  // Before the start, as when initial weights are compared.
  ledger.meter().count_seconds("world", Purpose::Metrics, 16);
  ledger.start();
  train_a_bit(ledger);
  ledger.end();
  const WorkerFigures figures = ledger.figures(kCounts, 77);
  expect_figures_of_a_bit(figures);
  EXPECT_EQ(figures.trained_parameters, 77);
  EXPECT_EQ(figures.seconds.evaluate, ledger.pause_seconds());
  EXPECT_EQ(figures.seconds.train, ledger.train_seconds());
}

TEST(Ledger, CountsEvaluationsAfterItsEndWithoutTrainingOn) {
  Ledger ledger;
  ledger.start();
  ledger.end();
  const WorkerFigures before = ledger.figures({}, 0);
  const Ledger::Pause pause = ledger.begin_pause();
  ledger.meter().count("world", Purpose::Metrics, 9);
  ledger.end_pause(pause, &TimeSplit::checkpoint);
  const WorkerFigures after = ledger.figures({}, 0);
  EXPECT_EQ(after.traffic.metrics, 9);
  EXPECT_GE(after.seconds.checkpoint, before.seconds.checkpoint);
  EXPECT_EQ(after.seconds.train, before.seconds.train);
  EXPECT_LE(after.seconds.train + after.seconds.checkpoint, ledger.seconds());
}

// What a ledger with some traffic saves.
state::State saved() {
  Ledger ledger;
  ledger.start();
  train_a_bit(ledger);
  state::State state;
  auto archive = state::Archive::saving(state);
  ledger.archive(archive, kCounts);
  return state;
}

TEST(Ledger, GoesOnFromWhatWasSaved) {
  state::State state = saved();
  auto archive = state::Archive::loading(state);
  Ledger ledger;
  ledger.archive(archive, {});
  EXPECT_GE(ledger.seconds(), state.values->at("seconds").get<double>());
  expect_figures_of_a_bit(ledger.figures({}, 0));
}

TEST(Ledger, RefusesFiguresThatCannotBe) {
  const auto refused = [](const char* name, const ordered_json& value) {
    state::State state = saved();
    (*state.values)[name] = value;
    auto archive = state::Archive::loading(state);
    Ledger ledger;
    expect_error([&] { ledger.archive(archive, {}); }, ErrorKind::DamagedData, {name});
  };
  refused("seconds", -1.0);
  refused("seconds", 1e10);
  refused("vnmse", {1.0});
  refused("traffic_by_phase", {1.0, 2.0});
  refused("traffic", 7);
  refused("traffic", {{"world", {{1, 2, 3.0}}}});  // one purpose of five
  const ordered_json none = {0, 0, 0.0};
  refused("traffic", {{"world", {none, none, none, none, {-1, 0, 0.0}}}});
}

// A worker that writes checkpoints communicates while training; the others wait for it in pauses.
TEST(Ledger, TakesOverTheMeansOfOtherWorkers) {
  std::vector<state::State> states(2);
  for (int i = 0; i < 2; ++i) {
    Ledger ledger;
    ledger.meter().count("world", Purpose::Gradient, i == 0 ? 100 : 303);
    ledger.meter().count_seconds("world", Purpose::Gradient, i == 0 ? 1 : 2);
    auto archive = state::Archive::saving(states[static_cast<std::size_t>(i)]);
    ledger.archive(archive, {});
    ordered_json& values = *states[static_cast<std::size_t>(i)].values;
    values["metrics_seconds"] = i == 0 ? 0.25 : 1.75;
    values["svd_seconds"] = i == 0 ? 1.0 : 2.0;
    values["data_seconds"] = i == 0 ? 3.0 : 4.0;
    values["traffic_by_phase"] = {i == 0 ? 100.0 : 200.0, 10.0, 1.0};
  }
  Ledger ledger;
  auto first = state::Archive::loading(states.front());
  ledger.archive(first, {});
  ledger.average(states);
  const comm::Traffic mean = ledger.meter().of(Purpose::Gradient);
  EXPECT_EQ(mean.bytes, 202);  // 201.5, rounded
  EXPECT_EQ(mean.calls, 1);
  EXPECT_EQ(mean.seconds, 1.5);
  const WorkerFigures figures = ledger.figures({}, 0);
  EXPECT_EQ(figures.seconds.communication, 0.5);
  EXPECT_EQ(figures.seconds.svd, 1.5);
  EXPECT_EQ(figures.seconds.data, 3.5);
  EXPECT_EQ(figures.traffic.full_phase, 150);
  EXPECT_EQ(figures.traffic.ab_phase, 10);
}

TEST(Figures, AreGatheredInRankOrder) {
  comm::run_workers(3, 60, [](comm::Communicator& world) {
    WorkerFigures own;
    own.seconds.train = 10 + world.rank();
    own.trained_parameters = 100 + world.rank();
    const std::vector<WorkerFigures> all = comm::gather_values(world, own);
    ASSERT_EQ(all.size(), 3U);
    for (int rank = 0; rank < 3; ++rank) {
      const WorkerFigures& one = all[static_cast<std::size_t>(rank)];
      EXPECT_EQ(one.seconds.train, 10 + rank);
      EXPECT_EQ(one.trained_parameters, 100 + rank);
    }
  });
}

}  // namespace
}  // namespace abtrain::train
