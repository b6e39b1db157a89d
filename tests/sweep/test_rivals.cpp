#include "sweep/rivals.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "config/config.h"
#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "plan/planned_data.h"
#include "plan/traffic.h"
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

constexpr const char* kVgg =
    "name: mine\nworkers: 2\ndata: {name: cifar10, batch_size: 16}\n"
    "model: {name: vgg11, width: 0.25}\n"
    "method: {name: ab, group_size: 1, dense_share: 0.01, rank: {rule: budget, ratio: 10}}\n"
    "optimizer: {name: adamw, lr: 1e-3}\ntrain: {steps: 100}\n";

// It says nothing of AB-training.
std::string dense() {
  const std::string text = kConfig;
  const std::size_t begin = text.find("method:");
  return text.substr(0, begin) + "method: {name: ddp}\n" + text.substr(text.find("optimizer:"));
}

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
    const auto at = std::ranges::find(list.left_out, name, &LeftOut::name);
    return at == list.left_out.end() ? "" : at->why;
  }
};

TEST_F(Rivals, SmallNetworksHaveTheSizeOfAbTraining) {
  const RivalList list = this->list(kConfig);
  EXPECT_EQ(
      names(list),
      (std::vector<std::string>{
          "ddp", "ddp_muon", "powersgd", "muloco_2bit", "sparseloco", "ab", "ab_narrower",
          "ab_nearly_dense", "ab_recipe", "small_ddp", "small_ddp_int4", "small_ddp_muon",
          "small_powersgd", "small_powersgd_muon", "small_muloco_2bit", "small_diloco_2bit"}));
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

// A narrower network is compressed less, down to as many parameters.
TEST_F(Rivals, AbTrainingMayHaveOtherWidthsOfItsSize) {
  const auto stored = [](const RivalPlan& rival) {
    return static_cast<double>(
        config::model_sizes(rival.options, plan::planned_data(rival.options.data).shape)->stored);
  };
  const auto expect_sizes = [&](const RivalList& list, const std::string& name, double ratio) {
    const RivalPlan& whole = find(list, name.c_str());
    const RivalPlan& middle = find(list, (name + "_narrower").c_str());
    const RivalPlan& small = find(list, (name + "_nearly_dense").c_str());
    EXPECT_NEAR(middle.options.method.rank.ratio, std::sqrt(ratio), 0.01);
    EXPECT_NEAR(small.options.method.rank.ratio, std::sqrt(std::sqrt(ratio)), 0.01);
    for (const RivalPlan* one : {&middle, &small}) {
      EXPECT_NEAR(stored(*one) / stored(whole), 1, 0.03) << one->name;
      // Else they are the same.
      config::RunOptions o = one->options;
      o.model.width = whole.options.model.width;
      o.method.rank.ratio = whole.options.method.rank.ratio;
      EXPECT_EQ(content_of(o), content_of(whole.options));
      EXPECT_EQ(one->tune, whole.tune);
    }
    EXPECT_LT(small.options.model.width, middle.options.model.width);
    EXPECT_LT(middle.options.model.width, whole.options.model.width);
  };
  expect_sizes(list(kConfig), "ab", 6);
  expect_sizes(list(kConfig, {.ratio = 16}), "ab", 16);
  expect_sizes(list(dense(), {.ratio = 16}), "ab_recipe", 16);
  const auto count = [&](const RivalList& list) {
    return std::ranges::count_if(
        names(list), [](const std::string& name) { return name.starts_with("ab_n"); });
  };
  // Without the taps that see copies, the same size is a lower compression.
  const RivalList folded = list(kVgg, {.only = {"ab"}});
  const RivalPlan& whole = find(folded, "ab");
  const RivalPlan& own = find(folded, "ab_folded");
  EXPECT_TRUE(own.options.model.folded_head);
  EXPECT_EQ(own.options.model.width, whole.options.model.width);
  EXPECT_NEAR(stored(own) / stored(whole), 1, 0.03);
  EXPECT_LT(own.options.method.rank.ratio, 8);
  EXPECT_TRUE(find(folded, "ab_narrower").options.model.folded_head);
  EXPECT_EQ(count(list(kConfig, {.ratio = 2})), 1);  // 1.41:1; 1.19:1 is nearly the dense network
  EXPECT_EQ(count(list(kConfig, {.ratio = 1.5})), 0);
  EXPECT_EQ(count(list(kConfig, {.plans = true})), 0);
  EXPECT_EQ(count(list(kConfig, {}, {"method.rank.ratio=7"})), 0);
}

// Every small rival trains the network in each of its shapes, which have the same size.
TEST_F(Rivals, SmallNetworksHaveSeveralShapes) {
  const RivalList list = this->list(kVgg, {.only = {"ddp", "small_ddp", "small_muloco_2bit"}});
  EXPECT_EQ(
      names(list),
      (std::vector<std::string>{
          "ddp", "small_ddp", "small_ddp_folded", "small_ddp_matched", "small_muloco_2bit",
          "small_muloco_2bit_folded", "small_muloco_2bit_matched"}));
  EXPECT_EQ(find(list, "ddp").shape, "");
  EXPECT_FALSE(find(list, "small_ddp").options.model.folded_head);
  for (const std::string shape : {"folded", "matched"}) {
    const RivalPlan& rival = find(list, ("small_ddp_" + shape).c_str());
    EXPECT_EQ(rival.shape, shape);
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
  const RivalList plan = this->list(kVgg, {.plans = true});
  EXPECT_EQ(std::ranges::count(names(plan), "small_ddp"), 1);
  ASSERT_EQ(plan.shapes.shapes.size(), 1U);
  EXPECT_EQ(plan.shapes.shapes[0].name, "narrow");
  EXPECT_EQ(
      find(plan, "small_ddp").options.model.width, find(list, "small_ddp").options.model.width);
  EXPECT_TRUE(this->list(kVgg, {.only = {"ddp"}}).shapes.shapes.empty());
  expect_error(
      [&] { this->list(kVgg, {.small = "small.pt2"}); }, ErrorKind::Usage,
      {"--small: expected an exported model", "of vgg11 follow"});
  expect_error(
      [&] { this->list(kVgg, {.only = {"ddp"}, .small = "small.pt2"}); }, ErrorKind::Usage,
      {"--small: no rival of --only trains a small network"});
}

TEST_F(Rivals, WarmUpsBecomeSharesAndEachHasItsMoves) {
  const RivalList list = this->list(kConfig, {.tune = 6});
  EXPECT_EQ(list.settings, 6U);
  const RivalPlan& ab = find(list, "ab");
  EXPECT_EQ(ab.options.method.warmup_steps.unit, Duration::Unit::Percent);
  EXPECT_EQ(ab.options.method.warmup_steps.value, 10);
  EXPECT_EQ(ab.options.schedule.warmup_steps.value, 5);
  for (const RivalPlan& rival : list.rivals) {
    EXPECT_TRUE(rival.tune[0].empty());
  }
  EXPECT_EQ(find(list, "ddp").tune[1], (Sets{"optimizer.lr=x 2"}));
  EXPECT_EQ(find(list, "ddp_muon").tune[1], (Sets{"optimizer.lr=x 2", "optimizer.other_lr=x 2"}));
  // MuLoCo has two starts, and an interval.
  const auto& moves = find(list, "muloco_2bit").tune;
  EXPECT_EQ(moves[1], (Sets{"method.outer.lr=0.7", "method.sync_every=10"}));
  EXPECT_EQ(std::ranges::count(moves, Sets{"method.sync_every=x 2"}), 1);
  EXPECT_EQ(std::ranges::count(find(list, "ddp").tune, Sets{"method.sync_every=x 2"}), 0);
}

TEST_F(Rivals, ASmallRivalSendsAsMuchAsAbTraining) {
  const auto bytes = [](const RivalPlan& rival) {
    const data::DatasetShape set = plan::planned_data(rival.options.data).shape;
    return plan::planned_bytes(
        rival.options, config::model_sizes(rival.options, set)->sizes,
        config::run_length(rival.options, set.train));
  };
  EXPECT_NE(
      reason(this->list(kConfig), "small_muloco_ab_bytes").find("sends less than AB-training"),
      std::string::npos);
  const RivalList list = this->list(dense());
  const RivalPlan& same = find(list, "small_muloco_ab_bytes");
  const double every = same.options.method.sync_every.value;
  ASSERT_GT(every, 1);
  EXPECT_NEAR(bytes(same) / bytes(find(list, "ab_recipe")), 1, 1 / every);
  EXPECT_NE(bytes(same), bytes(find(list, "small_muloco_2bit")));
  for (const Sets& move : same.tune) {
    EXPECT_EQ(
        std::ranges::count_if(
            move, [](const std::string& one) { return one.starts_with("method.sync_every"); }),
        0);
  }
  EXPECT_EQ(
      reason(this->list(dense(), {}, {"method.sync_every=17"}), "small_muloco_ab_bytes"),
      "is the same as small_muloco_2bit here");
  const RivalPlan& coded = find(list, "small_ddp_int4");
  EXPECT_LT(bytes(coded), bytes(find(list, "small_ddp")) / 7);
}

TEST_F(Rivals, WhatMakesNoSenseIsLeftOutWithTheReason) {
  RivalList list = this->list(kConfig, {}, {"optimizer.name=muon"});
  EXPECT_EQ(reason(list, "ddp_muon"), "is the same as ddp here");
  EXPECT_EQ(reason(list, "small_ddp_muon"), "is the same as small_ddp here");
  EXPECT_EQ(
      reason(this->list(kConfig, {}, {"method.name=ddp"}), "ab_recipe"),
      "needs method.name=ab, and the command line gives method.name=ddp");
  list = this->list(dense(), {.ratio = 4});
  EXPECT_NE(reason(list, "ab").find("ab_recipe"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(list.parameters), 269322.0 / 4, 600);
  list = this->list(kConfig, {.only = {"ab", "local_sgd"}});
  EXPECT_EQ(
      names(list), (std::vector<std::string>{"local_sgd", "ab", "ab_narrower", "ab_nearly_dense"}));
  // What others do not know they miss; DiLoCo is not among the usual ones.
  EXPECT_EQ(reason(list, "small_ddp"), "not in --only");
  EXPECT_EQ(reason(list, "diloco"), "");
}

// Whatever a rival would set itself. Where the key makes it what it is, it is left out.
TEST_F(Rivals, WhatIsGivenHoldsForAll) {
  for (const std::string given :
       {"optimizer.weight_decay=0.2", "optimizer.lr=0.0125", "optimizer.momentum=0.8",
        "schedule.warmup_steps=7", "method.sync_every=17", "method.outer.lr=0.9",
        "method.warmup_steps=3", "reducer.dtype=fp16", "model.drop_rate=0.1", "optimizer.name=sgd",
        "reducer.name=int8", "method.name=ddp"}) {
    const std::string key = given.substr(0, given.find('='));
    const RivalList list = this->list(kConfig, {.only = rival_names()}, {given});
    const bool has_ab = std::ranges::count(list.left_out, "ab", &LeftOut::name) == 0;
    EXPECT_EQ(list.rivals.size() + list.left_out.size(), rival_names().size() + (has_ab ? 2 : 0))
        << given;
    for (const auto& [name, why, kind] : list.left_out) {
      EXPECT_TRUE(
          why.starts_with("is the same as") || why.starts_with("sends less than AB-training") ||
          why.starts_with("the configuration says nothing") ||
          why.starts_with("needs a configuration of adapters") ||
          (key.ends_with("name") && why.find(key) != std::string::npos) ||
          (name.starts_with("ddp_") && why.find(key) != std::string::npos))
          << name << ": " << why;
    }
    for (const RivalPlan& rival : list.rivals) {
      const Sets own = joined({list.common, rival.set});
      const auto read = [&](const Sets& sets) {
        return content_of(config::read_config(list.config, sets, {.shares_overrides = true}));
      };
      EXPECT_TRUE(read(own) == read(joined({own, {given}}))) << rival.name << " " << given;
      EXPECT_TRUE(content_of(rival.options) == read(own)) << rival.name << " " << given;
    }
  }
}

// The networks of AB-training's size have a width of their own, but nothing else.
TEST_F(Rivals, AGivenWidthIsThatOfTheLargeNetwork) {
  const RivalList list = this->list(kConfig, {}, {"model.width=0.5"});
  EXPECT_EQ(find(list, "ddp").options.model.width, 0.5);
  EXPECT_LT(find(list, "small_ddp").options.model.width, 0.5);
  EXPECT_EQ(std::ranges::count(list.common, "model.width=0.5"), 0);
}

TEST_F(Rivals, WrongRequestsAreRefused) {
  expect_error([&] { list(kConfig, {.only = {"small"}}); }, ErrorKind::Usage);
  expect_error([&] { list(kConfig, {.ratio = 1e5}); }, ErrorKind::Config);
  expect_error([&] { list(kConfig, {}, {"train.epochs=1"}); }, ErrorKind::Usage, {"train.epochs"});
  expect_error(
      [&] { list(kConfig, {}, {"method.rank.rule=sigma"}); }, ErrorKind::Config,
      {"expected a rule whose ranks are known before training"});
  expect_error(
      [&] { list("data: {name: fashion-mnist}\nmodel: {name: softmax}\n", {}); },
      ErrorKind::Config);
}

TEST_F(Rivals, TheFileReadsBackAsTheSameRuns) {
  // Without AB-training, the recipe gets its size.
  for (const std::string& text : {std::string(kConfig), dense()}) {
    RivalList list = this->list(text, {.tune = 1}, {"data.batch_size=10", "model={width: 0.9}"});
    for (RivalPlan& rival : list.rivals) {
      rival.steps = 48;
    }
    list.config = folder_ / "mine.yaml";
    list.left_out = {
        {"one", "diverged \"at once\"", LeftOut::Kind::Diverged}, {"two", "diverged: no"}};
    SweepArgs args;
    args.file = folder_.add("rivals.yaml", rivals_yaml(list, 2, "# head\n"));
    const Sweep sweep = read_sweep(args, {});
    const std::vector<LeftOut>& left_out = sweep.halving->left_out;
    ASSERT_EQ(left_out.size(), 2U);
    EXPECT_EQ(left_out[0].name, "one");
    EXPECT_EQ(left_out[0].why, "diverged \"at once\"");
    EXPECT_EQ(left_out[0].kind, LeftOut::Kind::Diverged);
    EXPECT_EQ(left_out[1].why, "diverged: no");
    EXPECT_EQ(left_out[1].kind, LeftOut::Kind::Other);
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
