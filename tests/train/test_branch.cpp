// Which keys a branch may change, and which checkpoint it starts from. Whole branches are in
// tests/cli/test_branches.cpp.
#include "train/branch.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "comm/run_workers.h"
#include "config/config.h"
#include "error_of.h"
#include "temp_folder.h"

namespace abtrain::train {
namespace {

using config::RunOptions;

class Branch : public ::testing::Test {
 protected:
  Branch() {
    options_.method.name = "ddp";
    save(40, {});
    save(60, 0.9);
    save(80, 0.8);
    options_.branch_from = run_;
  }
  void save(std::int64_t step, std::optional<double> accuracy) const {
    const std::string config = config::to_yaml(options_);
    folder_.add("run/config.yaml", config);
    comm::run_workers(1, 60, [&](comm::Communicator& world) {
      run_folder::CheckpointWriter writer({run_, config, 9}, world, nullptr, {});
      state::State state;
      ASSERT_TRUE(
          writer.save({.step = step, .run_steps = 100, .validation_accuracy = accuracy}, state, 0));
    });
  }

  const TempFolder folder_;
  const std::string run_ = folder_ / "run";
  RunOptions options_;
  Log log_{LogLevel::Quiet};
};

TEST_F(Branch, StartsFromTheCheckpointThatIsNamed) {
  for (const auto& [name, step] : std::vector<std::pair<std::string, std::int64_t>>{
           {"", 80}, {"@last", 80}, {"@best", 60}, {"@step-40", 40}}) {
    options_.branch_from = run_ + name;
    EXPECT_EQ(find_branch_point(options_, folder_ / "new", log_).step, step);
    EXPECT_EQ(*options_.branch_from, formatted("{}@step-{}", run_, step));
  }
  // What a run folder recorded, unless the step is named.
  options_.branch_from = run_ + "@step-60";
  folder_.add("new/config.yaml", config::to_yaml(options_));
  for (const auto& [name, kept] : std::vector<std::pair<std::string, std::string>>{
           {"", "@step-60"}, {"@best", "@step-60"}, {"@step-40", "@step-40"}}) {
    options_.branch_from = run_ + name;
    keep_branch_point(options_, folder_ / "new");
    EXPECT_EQ(*options_.branch_from, run_ + kept);
  }
  options_.branch_from = folder_ / "other";
  keep_branch_point(options_, folder_ / "new");
  EXPECT_EQ(*options_.branch_from, folder_ / "other");
}

TEST_F(Branch, KeysWhoseStateWouldNotFitStay) {
  struct Case {
    const char* key;
    bool fits;
    std::function<void(RunOptions&)> change;
  };
  const std::vector<Case> cases = {
      {"name", true, [](auto& o) { o.name = "else"; }},
      {"optimizer.lr", true, [](auto& o) { o.optimizer.lr *= 2; }},
      {"optimizer.weight_decay", true, [](auto& o) { o.optimizer.weight_decay = 0.5; }},
      {"schedule.name", true, [](auto& o) { o.schedule.name = optim::ScheduleName::Constant; }},
      {"train.steps", true, [](auto& o) { o.train.steps = 70; }},
      {"train.epochs", true, [](auto& o) { ++o.train.epochs; }},
      {"train.label_smoothing", true, [](auto& o) { o.train.label_smoothing = 0.5; }},
      {"data.augment", true, [](auto& o) { o.data.augment = data::AugmentName::Flip; }},
      {"model.drop_rate", true, [](auto& o) { o.model.drop_rate = 0.5; }},
      {"model.hidden", false, [](auto& o) { o.model.hidden = {3}; }},
      {"optimizer.name", false, [](auto& o) { o.optimizer.name = "sgd"; }},
      {"method.name", false, [](auto& o) { o.method.name = "local-sgd"; }},
      {"reducer.name", false, [](auto& o) { o.reducer.name = "thc"; }},
      {"order.name", false, [](auto& o) { o.order.name = "sequential"; }},
      {"data.batch_size", false, [](auto& o) { ++o.data.batch_size; }},
      {"data.validation", false, [](auto& o) { ++o.data.validation; }},
      {"seed", false, [](auto& o) { ++o.seed; }},
      {"workers", false, [](auto& o) { o.workers = 2; }}};
  const RunOptions same = options_;
  for (const Case& one : cases) {
    options_ = same;
    one.change(options_);
    const auto find = [&] { return find_branch_point(options_, folder_ / "new", log_); };
    if (one.fits) {
      EXPECT_EQ(find().step, 80) << one.key;
    } else {
      expect_error(find, ErrorKind::Config, {formatted("\n  {}: ", one.key)});
    }
    // The way that a resume names.
    const bool names = !way_by_branch(options_, run_folder::list_checkpoints(run_)[0]).empty();
    EXPECT_EQ(names, one.fits) << one.key;
  }
}

// SGD keeps moments only with momentum.
TEST_F(Branch, MomentumMayChangeButNotComeOrGo) {
  options_.optimizer.name = "sgd";
  options_.optimizer.momentum = 0.9;
  save(90, {});
  options_.optimizer.momentum = 0.5;
  EXPECT_EQ(find_branch_point(options_, folder_ / "new", log_).step, 90);
  options_.optimizer.momentum = 0;
  expect_error(
      [&] { find_branch_point(options_, folder_ / "new", log_); }, ErrorKind::Config,
      {"\n  optimizer.momentum: 0.9 there, 0 now"});
}

TEST_F(Branch, MustNotMoveWhatTheMethodHasDone) {
  options_.method.name = "local-sgd";
  options_.method.warmup_steps = Duration::percent(20);
  const auto from = run_folder::list_checkpoints(run_)[0];  // 80 of 100 steps
  check_branch(options_, from, {100, 100}, log_);
  expect_error(
      [&] {
        check_branch(options_, from, {100, 200}, log_);
      },
      ErrorKind::Config, {"method.warmup_steps=20"});
  options_.method.warmup_steps = Duration::steps(20);
  check_branch(options_, from, {100, 200}, log_);
  expect_error(
      [&] {
        check_branch(options_, from, {100, 80}, log_);
      },
      ErrorKind::Config, {"has done 80 steps already: expected a run of more steps, got 80"});
}

}  // namespace
}  // namespace abtrain::train
