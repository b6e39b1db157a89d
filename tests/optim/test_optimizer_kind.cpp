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
  EXPECT_EQ(
      error_of([&] { make_optimizer(wrong); }),
      Thrown(
          78,
          "optimizer.name: expected one of sgd, adamw, muon, qcmd-adagrad, "
          "qrda-adagrad; got 'adam'"));
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
  ScheduleOptions usual, level, late, constant;
  level.milestones = {0.5, 0.5};
  late.warmup_steps = Duration::steps(101);
  constant.name = ScheduleName::Constant;
  struct Row {
    const char* name;
    double momentum;
    std::optional<bool> nesterov;
    ScheduleOptions schedule;
    Keys wanted;
  };
  const std::vector<Row> rows = {
      {"adamw", 0.9, {}, usual, {}},
      {"adamw", 0.9, {}, level, {"schedule.milestones"}},
      {"adamw", 0.9, {}, late, {"schedule.warmup_steps"}},
      {"adamw", 0, true, usual, {}},  // not keys of adamw
      {"sgd", 0, true, usual, {"optimizer.nesterov"}},
      {"muon", 0, true, usual, {"optimizer.nesterov"}},
      {"muon", 0, {}, usual, {}},  // without momentum it does not matter
      {"muon", 0.5, true, usual, {}},
      {"qrda-adagrad", 0.9, {}, usual, {"schedule.name"}},
      {"qrda-adagrad", 0.9, {}, constant, {}}};
  for (const Row& row : rows) {
    OptimizerOptions options;
    options.name = row.name;
    options.momentum = row.momentum;
    options.nesterov = row.nesterov;
    EXPECT_EQ(keys_of(check(options, row.schedule, kLength)), row.wanted) << row.name;
  }
  OptimizerOptions dual;
  dual.name = "qrda-adagrad";
  const std::string message = check(dual, usual, kLength).at(0).message;
  EXPECT_TRUE(message.ends_with("expected constant, got cosine")) << message;
}

}  // namespace
}  // namespace abtrain::optim
