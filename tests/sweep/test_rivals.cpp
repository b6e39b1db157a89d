#include "sweep/rivals.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "config/config.h"
#include "sweep/halving.h"
#include "sweep_files.h"

namespace abtrain::sweep {
namespace {

constexpr const char* kConfig =
    "name: mine\nworkers: 2\n"
    "data: {name: fashion-mnist, batch_size: 50}\n"
    "model: {name: mlp, hidden: [256, 256]}\n"
    "method: {name: ab, group_size: 1, warmup_steps: 120, rank: {rule: budget, "
    "ratio: 6}}\n"
    "optimizer: {name: adamw, lr: 2e-3, weight_decay: 0.1}\n"
    "schedule: {name: cosine, warmup_steps: 60}\n"
    "train: {epochs: 2}\n";  // 1,200 steps

class Rivals : public testing::SweepFiles {
 protected:
  RivalList list(
      const std::string& text, const RivalsRequest& request = {}, const Sets& sets = {}) const {
    return list_rivals(folder_.add("mine.yaml", text), sets, request, {});
  }
  static std::vector<std::string> names(const RivalList& list) {
    std::vector<std::string> out;
    for (const RivalPlan& rival : list.rivals) {
      out.push_back(rival.name);
    }
    return out;
  }
  static const RivalPlan& find(const RivalList& list, const char* name) {
    return *std::ranges::find(list.rivals, name, &RivalPlan::name);
  }
  static std::string reason(const RivalList& list, const std::string& name) {
    for (const auto& [left, why] : list.left_out) {
      if (left == name) {
        return why;
      }
    }
    return "";
  }
};

TEST_F(Rivals, SmallNetworksHaveTheSizeOfAbTraining) {
  const RivalList list = this->list(kConfig);
  EXPECT_EQ(
      names(list), (std::vector<std::string>{
                       "ddp", "ddp_muon", "powersgd", "muloco_2bit", "sparseloco", "ab",
                       "ab_recipe", "small_ddp", "small_ddp_muon", "small_powersgd",
                       "small_powersgd_muon", "small_muloco_2bit", "small_diloco_2bit"}));
  // 784 x 256 + 256 x 256 + 256 x 10 and biases, six times fewer.
  EXPECT_NEAR(static_cast<double>(list.parameters), 269322.0 / 6, 600);
  for (const char* name : {"small_ddp", "small_muloco_2bit", "small_diloco_2bit"}) {
    const auto& o = find(list, name).options;
    const double h = std::floor(256 * o.model.width);
    const double stored = 784 * h + h * h + 10 * h + 2 * h + 10;
    EXPECT_NEAR(stored / static_cast<double>(list.parameters), 1, 0.02) << name;
  }
  EXPECT_EQ(find(list, "ab_recipe").options.method.rank.ratio, 6);
}

// Every small rival trains the network in each of its shapes, which have the same size.
TEST_F(Rivals, SmallNetworksHaveSeveralShapes) {
  const std::string config =
      "name: mine\nworkers: 2\ndata: {name: cifar10, batch_size: 16}\n"
      "model: {name: vgg11, width: 0.25}\n"
      "method: {name: ab, group_size: 1, dense_share: 0.01, rank: {rule: budget, ratio: 10}}\n"
      "optimizer: {name: adamw, lr: 1e-3}\ntrain: {steps: 100}\n";
  const RivalList list = this->list(config, {.only = {"ddp", "small_ddp", "small_muloco_2bit"}});
  EXPECT_EQ(
      names(list),
      (std::vector<std::string>{
          "ddp", "small_ddp", "small_ddp_folded", "small_ddp_matched", "small_muloco_2bit",
          "small_muloco_2bit_folded", "small_muloco_2bit_matched"}));
  EXPECT_TRUE(find(list, "ddp").shapes.empty());
  EXPECT_FALSE(find(list, "small_ddp").options.model.folded_head);
  for (const std::string shape : {"folded", "matched"}) {
    const RivalPlan& rival = find(list, ("small_ddp_" + shape).c_str());
    ASSERT_EQ(rival.shapes.size(), 1U);
    EXPECT_EQ(rival.shapes[0].first, shape);
    EXPECT_NE(rival.why.find("; " + shape + ": "), std::string::npos) << rival.why;
    EXPECT_TRUE(rival.options.model.folded_head);
    EXPECT_EQ(
        rival.options.model.widths,
        find(list, ("small_muloco_2bit_" + shape).c_str()).options.model.widths);
    const auto parameters = static_cast<double>(
        nn::make_model(rival.options.model, {3, 32, 32, 10})->dense_parameters());
    EXPECT_NEAR(parameters / static_cast<double>(list.parameters), 1, 0.03) << shape;
  }
  ASSERT_EQ(list.shapes.shapes.size(), 3U);
  // A plan has one row for each method.
  const std::vector<std::string> planned = names(this->list(config, {.plans = true}));
  EXPECT_EQ(std::ranges::count(planned, "small_ddp"), 1);
  EXPECT_TRUE(std::ranges::none_of(
      planned, [](const std::string& name) { return name.ends_with("_folded"); }));
  EXPECT_TRUE(this->list(config, {.only = {"ddp"}}).shapes.shapes.empty());
  expect_error(
      [&] { this->list(config, {.small = "small.pt2"}); }, ErrorKind::Usage,
      {"--small: expected an exported model", "of vgg11 follow"});
}

TEST_F(Rivals, WarmUpsBecomeSharesAndSettingsAreEqualInNumber) {
  const RivalList list = this->list(kConfig, {.tune = 6});
  const RivalPlan& ab = find(list, "ab");
  EXPECT_EQ(ab.options.method.warmup_steps.unit, Duration::Unit::Percent);
  EXPECT_EQ(ab.options.method.warmup_steps.value, 10);
  EXPECT_EQ(ab.options.schedule.warmup_steps.value, 5);
  for (const RivalPlan& rival : list.rivals) {
    ASSERT_EQ(rival.tune.size(), 6U) << rival.name;
    EXPECT_TRUE(rival.tune[0].empty());
  }
  EXPECT_EQ(find(list, "ddp").tune[1], (Sets{"optimizer.lr=0.004"}));
  // It has a decay of 0.1 already.
  EXPECT_EQ(find(list, "ddp").tune[3], (Sets{"optimizer.weight_decay=0"}));
  EXPECT_EQ(find(list, "ddp_muon").tune[3], (Sets{"optimizer.weight_decay=0.1"}));
  EXPECT_EQ(find(list, "muloco_2bit").tune[5], (Sets{"method.sync_every=40"}));
}

TEST_F(Rivals, WhatMakesNoSenseIsLeftOutWithTheReason) {
  RivalList list = this->list(kConfig, {}, {"optimizer.name=muon"});
  EXPECT_EQ(reason(list, "ddp_muon"), "is the same as ddp here");
  EXPECT_EQ(reason(list, "small_ddp_muon"), "is the same as small_ddp here");
  list = this->list(kConfig, {.ratio = 4}, {"method.name=ddp"});
  EXPECT_NE(reason(list, "ab").find("ab_recipe"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(list.parameters), 269322.0 / 4, 600);
  EXPECT_EQ(
      names(this->list(kConfig, {.only = {"ab", "local_sgd"}})),
      (std::vector<std::string>{"local_sgd", "ab"}));
}

TEST_F(Rivals, WrongRequestsAreRefused) {
  expect_error([&] { list(kConfig, {.only = {"small"}}); }, ErrorKind::Usage);
  expect_error([&] { list(kConfig, {.ratio = 1e5}); }, ErrorKind::Config);
  expect_error(
      [&] { list("data: {name: fashion-mnist}\nmodel: {name: softmax}\n", {}); },
      ErrorKind::Config);
}

TEST_F(Rivals, TheFileReadsBackAsTheSameRuns) {
  // Also of a configuration that says nothing of AB-training: the recipe gets its size.
  for (const Sets& sets : {Sets{}, Sets{"method.name=ddp"}}) {
    RivalList list = this->list(kConfig, {.tune = 1}, joined({sets, {"data.batch_size=10"}}));
    for (RivalPlan& rival : list.rivals) {
      rival.steps = 48;
    }
    list.config = folder_ / "mine.yaml";
    SweepArgs args;
    args.file = folder_.add("rivals.yaml", rivals_yaml(list, 2, "# head\n"));
    const Sweep sweep = read_sweep(args, {});
    const auto runs = this->runs(round_of(sweep, 0).sweep);
    ASSERT_EQ(runs.size(), 2 * list.rivals.size());
    for (std::size_t i = 0; i < list.rivals.size(); ++i) {
      config::RunOptions wanted = list.rivals[i].options;
      wanted.train.steps = 48;
      EXPECT_EQ(content_of(runs[i].options), content_of(wanted));
      EXPECT_EQ(runs[list.rivals.size() + i].label, list.rivals[i].name + ",seed=2");
      EXPECT_EQ(runs[i].options.data.batch_size, 10);
    }
  }
}

}  // namespace
}  // namespace abtrain::sweep
