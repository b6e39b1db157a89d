// Who makes the others wait: the closed form, the windows of a run, and whole
// runs with a worker that is slowed down.
#include "train/waiting.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/socket.h"
#include "config/config.h"
#include "temp_folder.h"
#include "train/session.h"

namespace abtrain::train {
namespace {

TimeSplit split(double own, double blocked, double data = 0) {
  return {.train = own + blocked, .compute = own - data, .communication = blocked, .data = data};
}

TEST(Waiting, IsTheTimeInCollectivesBeyondThatOfTheSlowest) {
  // All train for 10 s; the network takes 2 s.
  const Waiting waiting = find_waiting({split(5, 5), split(8, 2), split(6, 4)});
  EXPECT_EQ(waiting.seconds, (std::vector<double>{3, 0, 2}));
  EXPECT_EQ(waiting.slowest, 1);
  EXPECT_DOUBLE_EQ(waiting.share, 2.5 / 10);
}

TEST(Waiting, IsNoLongerThanTheTimeInCollectives) {
  // Worker 0 has not met the others yet.
  const Waiting waiting = find_waiting({split(5, 0.5), split(8, 0.5)});
  EXPECT_EQ(waiting.seconds, (std::vector<double>{0.5, 0}));
  EXPECT_DOUBLE_EQ(waiting.share, 0.5 / 8.5);
  // In collectives for long, for what came before: no wait of these steps.
  EXPECT_EQ(find_waiting({split(5, 90), split(8, 2)}).seconds, (std::vector<double>{3, 0}));
}

TEST(Waiting, OfEqualsOrOfOneIsNone) {
  EXPECT_EQ(find_waiting({split(5, 5), split(5, 5)}).share, 0);
  EXPECT_EQ(find_waiting({split(5, 5)}).share, 0);
  EXPECT_EQ(find_waiting({split(0, 0), split(0, 0)}).share, 0);
  // Spans of a GPU may be longer than what the host has seen.
  EXPECT_EQ(find_waiting({split(-1, 2), split(0, -1)}).seconds, (std::vector<double>{1, 0}));
}

TEST(Waiting, PartsAddUpToTheTimeOfAWorker) {
  const std::vector<TimeSplit> spent = {split(5, 5, 1), split(8, 2)};
  const auto times = times_json(spent, find_waiting(spent), 0);
  EXPECT_EQ(
      times.dump(), R"({"compute":4.0,"svd":0.0,"data":1.0,"waiting":3.0,"communication":2.0})");
}

// What workers have spent after so many steps, at so many seconds of their own
// per step, in steps that end together.
comm::AllSpent after(std::int64_t steps, const std::vector<double>& own, double data = 0) {
  const double longest = *std::ranges::max_element(own) + 0.01;
  comm::AllSpent all{steps, {}};
  for (const double one : own) {
    const auto n = static_cast<double>(steps);
    all.workers.push_back(split(n * one, n * (longest - one), n * data));
  }
  return all;
}

TEST(SlowWatch, NamesAWorkerOnce) {
  SlowWatch watch(5);
  const std::vector<double> own = {0.1, 0.14, 0.1};
  const std::vector<std::string> hosts = {"here", "there", "elsewhere"};
  EXPECT_FALSE(watch.look({}, hosts));
  EXPECT_FALSE(watch.look(after(20, own), hosts));  // the warm-up
  EXPECT_FALSE(watch.look(after(40, own), hosts));  // 3 s
  EXPECT_FALSE(watch.look(after(60, own), hosts));  // it may have been chance
  const auto warning = watch.look(after(100, own), hosts);
  ASSERT_TRUE(warning);
  EXPECT_NE(
      warning->find("worker 1 on there makes the others wait 27 % of the time"), std::string::npos)
      << *warning;
  EXPECT_NE(warning->find("140 ms per step, theirs 100 ms"), std::string::npos) << *warning;
  EXPECT_FALSE(watch.look(after(140, own), hosts));
  EXPECT_FALSE(watch.look(after(180, own), hosts));
}

TEST(SlowWatch, IsNotMisledByChanceOrDecompositions) {
  SlowWatch watch(5);
  comm::AllSpent now = after(20, {0.1, 0.1});
  for (int window = 0; window < 8; ++window) {
    EXPECT_FALSE(watch.look(now, {})) << window;
    // Now this one is slow, now the other.
    const auto add = [&](std::size_t worker, double own, double blocked) {
      TimeSplit& spent = now.workers[worker];
      spent.train += own + blocked;
      spent.communication += blocked;
    };
    add(static_cast<std::size_t>(window % 2), 8, 1);
    add(static_cast<std::size_t>(1 - window % 2), 5, 4);
    now.steps += 20;
  }
  SlowWatch other(5);
  for (int window = 0; window < 4; ++window) {
    now.steps += 20;
    TimeSplit owner = split(90.0 * window, 10.0 * window);
    owner.svd = 60.0 * window;
    now.workers = {owner, split(30.0 * window, 70.0 * window)};
    EXPECT_FALSE(other.look(now, {})) << window;
  }
}

TEST(SlowWatch, LooksOnlyAtTheWindow) {
  SlowWatch watch(5);
  // Worker 0 was slow in the warm-up only; nobody is now.
  comm::AllSpent begin = after(20, {0.1, 0.1});
  begin.workers[0] = split(90, 0);
  begin.workers[1] = split(2, 88);
  comm::AllSpent end = begin;
  end.steps = 80;
  for (TimeSplit& spent : end.workers) {
    spent = split(spent.train - spent.communication + 6, spent.communication + 1);
  }
  EXPECT_FALSE(watch.look(begin, {}));
  EXPECT_FALSE(watch.look(end, {}));
}

TEST(SlowWatch, SaysNothingOfATenthOrLess) {
  SlowWatch watch(5);
  const std::vector<double> own = {0.1, 0.112, 0.1};  // of 122 ms
  watch.look(after(20, own), {});
  EXPECT_FALSE(watch.look(after(90, own), {}));
  EXPECT_FALSE(watch.look(after(160, own), {}));
}

TEST(SlowWatch, WithoutAMeetingNobodyHasWaited) {
  SlowWatch watch(5);
  const auto alone = [](std::int64_t steps) {
    const auto n = static_cast<double>(steps);
    return comm::AllSpent{steps, {split(0.1 * n, 0), split(0.2 * n, 0)}};
  };
  watch.look(alone(20), {});
  EXPECT_FALSE(watch.look(alone(100), {}));
  EXPECT_FALSE(watch.look(alone(200), {}));
  // They meet: worker 0 has waited for all of these steps at once.
  comm::AllSpent met = alone(300);
  met.workers[0] = split(30, 30);
  const auto warning = watch.look(met, {});
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("worker 1 makes the others wait 50 %"), std::string::npos) << *warning;
}

TEST(SlowWatch, SaysWhetherItIsTheData) {
  SlowWatch watch(5);
  watch.look(after(20, {0.1, 0.2}, 0.08), {});
  watch.look(after(55, {0.1, 0.2}, 0.08), {});
  const auto warning = watch.look(after(90, {0.1, 0.2}, 0.08), {});
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("(80 ms of it waiting for data)"), std::string::npos) << *warning;
}

// Threads, of which one sleeps before each of its steps.
void expect_named(const std::vector<std::string>& sets) {
  const TempFolder folder;
  std::vector<std::string> all = {
      "name=slow",           "output=" + folder.path(), "workers=3",       "device=cpu",
      "model.hidden=[16,8]", "data.batch_size=8",       "train.steps=120", "train.threads=1",
      "train.log_every=20",  "evaluate.every=60",       "data.subset=600", "train.timeout=60",
      "checkpoint.every=0"};
  all.insert(all.end(), sets.begin(), sets.end());
  const config::RunOptions options =
      config::read_config(ABTRAIN_SOURCE_DIR "/configs/fashion_mnist_mlp.yaml", all);
  SessionOptions session;
  session.hooks.slow_window = 0.1;
  session.hooks.before_step = [](int rank, std::int64_t, nn::Model&) {
    if (rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  };
  const std::string file = folder.file("log");
  const int descriptor = ::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(descriptor, 0);
  Log log(LogLevel::Info, descriptor);
  const std::string report = train(options, session, log);
  ::close(descriptor);
  const std::string text = read_file(file);
  const std::string named = "worker 2 on " + host_name() + " makes the others wait";
  const std::size_t first = text.find(named);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("makes the others wait", first + named.size()), std::string::npos) << text;
  const auto summary = nlohmann::ordered_json::parse(
      read_file(options.output + "/" + options.name + "/summary.json"));
  EXPECT_EQ(summary["slowest_worker"], 2);
  EXPECT_EQ(summary["by_worker"].size(), 3U);
  EXPECT_GT(summary["by_worker"][0]["waiting"], 1.0);  // of 120 sleeps of 20 ms
  EXPECT_NE(report.find("; slowest: worker 2 on " + host_name()), std::string::npos);

  // The wait for 60 sleeps belongs to the training, not to the evaluation.
  std::istringstream events(read_file(options.output + "/" + options.name + "/metrics.jsonl"));
  std::string line;
  while (std::getline(events, line) && line.find("\"event\":\"evaluate\"") == std::string::npos) {
  }
  EXPECT_GE(nlohmann::json::parse(line)["train_seconds"], 1.2) << line;
}

TEST(SlowWorker, OfThreadsIsNamed) {
  expect_named({"method.name=ddp"});
}

TEST(SlowWorker, IsNamedWhereWorkersRarelyMeet) {
  expect_named(
      {"method.name=local-sgd", "method.sync_every=45", "method.warmup_steps=0",
       "train.steps=180"});
}

}  // namespace
}  // namespace abtrain::train
