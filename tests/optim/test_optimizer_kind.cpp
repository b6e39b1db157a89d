#include "optim/optimizer_kind.h"

#include <gtest/gtest.h>

#include "error_of.h"

namespace abtrain::optim {
namespace {

// The first key of each conflict.
std::vector<std::string> keys_of(const Conflicts& conflicts) {
  std::vector<std::string> keys;
  for (const Conflict& conflict : conflicts) {
    keys.push_back(conflict.keys.front());
  }
  return keys;
}

const StatedLength kLength{Duration::steps(100), "train.steps"};
using Keys = std::vector<std::string>;

TEST(OptimizerKinds, AreFoundAndMadeByName) {
  EXPECT_EQ(optimizer_names(), (Keys{"sgd", "adamw", "muon", "qcmd-adagrad", "qrda-adagrad"}));
  for (const std::string& name : optimizer_names()) {
    OptimizerOptions options;
    options.name = name;
    EXPECT_EQ(kind_of(options).name, name);
    EXPECT_GE(make_optimizer(options)->moments(), 1) << name;
  }
  OptimizerOptions wrong;
  wrong.name = "adam";
  const auto [code, what] = error_of([&] { kind_of(wrong); });
  EXPECT_EQ(code, 78);
  EXPECT_EQ(
      what,
      "optimizer.name: expected one of sgd, adamw, muon, qcmd-adagrad, "
      "qrda-adagrad; got 'adam'");
}

TEST(OptimizerKinds, OnlyAnL1TermMakesSparse) {
  for (const std::string& name : optimizer_names()) {
    OptimizerOptions options;
    options.name = name;
    EXPECT_FALSE(makes_sparse(options)) << name;
    options.l1 = 0.1;
    EXPECT_EQ(makes_sparse(options), name.ends_with("adagrad")) << name;
  }
}

TEST(OptimizerCheck, NamesTheKeysThatConflict) {
  OptimizerOptions options;
  ScheduleOptions schedule;
  EXPECT_TRUE(check(options, schedule, kLength).empty());
  schedule.milestones = {0.5, 0.5};
  EXPECT_EQ(keys_of(check(options, schedule, kLength)), Keys{"schedule.milestones"});
  schedule = {};
  schedule.warmup_steps = Duration::steps(101);
  EXPECT_EQ(keys_of(check(options, schedule, kLength)), Keys{"schedule.warmup_steps"});
  schedule = {};
  options.nesterov = true;
  options.momentum = 0;
  EXPECT_TRUE(check(options, schedule, kLength).empty());  // not keys of adamw
  options.name = "sgd";
  EXPECT_EQ(keys_of(check(options, schedule, kLength)), Keys{"optimizer.nesterov"});
  options.name = "muon";
  EXPECT_EQ(keys_of(check(options, schedule, kLength)), Keys{"optimizer.nesterov"});
  options.nesterov = std::nullopt;  // without momentum it does not matter
  EXPECT_TRUE(check(options, schedule, kLength).empty());
  options.nesterov = true;
  options.momentum = 0.5;
  EXPECT_TRUE(check(options, schedule, kLength).empty());
  options.name = "qrda-adagrad";
  const Conflicts conflicts = check(options, schedule, kLength);
  ASSERT_EQ(keys_of(conflicts), Keys{"schedule.name"});
  EXPECT_TRUE(conflicts[0].message.ends_with("expected constant, got cosine"))
      << conflicts[0].message;
  schedule.name = ScheduleName::Constant;
  EXPECT_TRUE(check(options, schedule, kLength).empty());
}

}  // namespace
}  // namespace abtrain::optim
