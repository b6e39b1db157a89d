#include "config/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/options_apply.h"
#include "base/scalars.h"
#include "base/text.h"
#include "config/check_options.h"
#include "data/image_folder_files.h"
#include "error_of.h"
#include "methods/ab/phase.h"
#include "plan/plan.h"
#include "temp_folder.h"

namespace abtrain::config {
namespace {

namespace fs = std::filesystem;

// Kind and message of the error that reading throws.
Thrown reading_error(
    const std::string& path, const std::vector<std::string>& sets = {},
    const ConfigContext& context = {}) {
  return error_of([&] { read_config(path, sets, context); });
}

TEST(Config, FileAndSetsOverDefaults) {
  const TempFolder folder;
  const std::string path = folder.add(
      "a.yaml",
      "workers: 4\n"
      "model: {name: mlp, hidden: [64]}\n"
      "method: {rank: {rule: ratio, ratio: 20}, warmup_steps: 1 epoch}\n"
      "optimizer:\n  lr: 1e-2   # fast\n");
  const RunOptions o = read_config(
      path, {"optimizer.lr=0.5", "model.hidden=[8, 4]", "method.rank={rule: fixed, rank: 3}",
             " seed = 7"});
  EXPECT_EQ(o.workers, 4);
  EXPECT_EQ(o.seed, 7u);
  EXPECT_EQ(o.model.hidden, (std::vector<std::int64_t>{8, 4}));
  EXPECT_EQ(o.method.rank.rule, linalg::RankRuleName::Fixed);
  EXPECT_EQ(o.method.rank.rank, 3);
  EXPECT_EQ(o.method.warmup_steps.unit, Duration::Unit::Epochs);
  EXPECT_EQ(o.optimizer.lr, 0.5);
  EXPECT_EQ(o.optimizer.weight_decay, RunOptions{}.optimizer.weight_decay);
}

TEST(Config, KeysOfOtherChoicesAreLeftOutOfFiles) {
  const TempFolder folder;
  const std::string path = folder.add(
      "a.yaml",
      "workers: 4\n"
      "method: {sync_every: 70, rank: {rule: ratio, ratio: 20, cut: 0.5}}\n"
      "reducer: {rank: 8, dtype: bf16}\n");
  std::vector<std::string> notes;
  const RunOptions ab = read_config(path, {}, {.notes = &notes});
  EXPECT_EQ(ab.method.rank.ratio, 20);
  EXPECT_EQ(ab.method.rank.cut, RunOptions{}.method.rank.cut);
  EXPECT_EQ(
      notes,
      std::vector<std::string>{"without effect, because they belong to other choices than this "
                               "run's: method.rank.cut, reducer.rank"});
  notes.clear();
  const RunOptions ddp = read_config(path, {"method.name=ddp"}, {.notes = &notes});
  EXPECT_EQ(ddp.method.sync_every.value, RunOptions{}.method.sync_every.value);
  EXPECT_EQ(ddp.reducer.dtype, at::kBFloat16);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_TRUE(notes[0].ends_with(
      ": method.rank.cut, method.rank.ratio, method.rank.rule, method.sync_every, reducer.rank"))
      << notes[0];
  const std::string yaml = to_yaml(ddp);
  EXPECT_EQ(yaml.find("sync_every"), yaml.npos) << yaml;
  EXPECT_NE(yaml.find("method:\n  name: ddp\noptimizer:"), yaml.npos) << yaml;
  // Overrides of several configurations are those that each one has.
  notes.clear();
  const std::vector<std::string> sets = {"method.name=ddp", "method.sync_every=3"};
  EXPECT_NO_THROW(read_config("", sets, {.shares_overrides = true, .notes = &notes}));
  EXPECT_EQ(
      notes, std::vector<std::string>{"without effect, because they belong to other choices than "
                                      "this run's: method.sync_every"});
}

TEST(Config, TheLastOverrideCounts) {
  const RunOptions o = read_config("", {"workers=2", "seed=1", "seed=2"});
  EXPECT_EQ(o.seed, 2u);
}

TEST(Config, ByteOrderMarkAndOtherHarmlessThings) {
  const TempFolder folder;
  const RunOptions o = read_config(folder.add(
      "a.yaml",
      "\xEF\xBB\xBF%YAML 1.2\n---\nname: \"\xC3\xBC 1\"\r\n"
      "workers: &n 2\n# a comment\noutput: 12\n...\n"));
  EXPECT_EQ(o.name, "\xC3\xBC 1");
  EXPECT_EQ(o.workers, 2);
  EXPECT_EQ(o.output, "12");
}

TEST(Config, KeysOfAnUnusedMethodDoNotConflict) {
  // Three workers fit no groups of two, but ddp has no groups.
  EXPECT_EQ(reading_error("", {"workers=3", "method.group_size=2", "method.name=ddp"}).second, "");
}

TEST(Extends, LaterFilesWin) {
  const TempFolder folder;
  folder.add("root.yaml", "workers: 2\nseed: 1\nname: root\noutput: root\n");
  folder.add("left.yaml", "extends: root.yaml\nseed: 2\nname: left\n");
  folder.add("sub/right.yaml", "extends: ../root.yaml\nname: right\n");
  const RunOptions o =
      read_config(folder.add("top.yaml", "name: top\nextends: [left, sub/right.yaml]\n"));
  EXPECT_EQ(o.name, "top");
  // root is read once: right's copy does not undo what left has set.
  EXPECT_EQ(o.seed, 2u);
  EXPECT_EQ(o.output, "root");
}

TEST(Extends, IsFoundBesideTheFileThenInTheFolders) {
  const TempFolder here, there;
  here.add("beside.yaml", "seed: 1\n");
  there.add("beside.yaml", "seed: 2\n");
  there.add("far.yaml", "output: far\n");
  const std::string path = here.add("a.yaml", "workers: 2\nextends: [beside.yaml, far.yaml]\n");
  const RunOptions o = read_config(path, {}, {{there.path()}, 0});
  EXPECT_EQ(o.seed, 1u);
  EXPECT_EQ(o.output, "far");
}

TEST(Extends, WrongOnesPointAtThemselves) {
  const TempFolder folder;
  folder.add("base.yaml", "sede: 1\n");
  folder.add("a.yaml", "extends: b.yaml\n");
  folder.add("b.yaml", "extends: [a.yaml]\n");
  const auto expect = [&](const std::string& yaml, const std::vector<std::string>& parts) {
    const std::string path = folder.add("c.yaml", yaml);
    expect_error([&] { read_config(path); }, ErrorKind::Config, parts);
  };
  expect(
      "extends: bsae.yaml\n",
      {"c.yaml:1:10: error: extends: 'bsae.yaml' was not found; looked for " +
       folder.file("bsae.yaml") + "; did you mean 'base.yaml'?"});
  expect_error(
      [&] { read_config(folder.file("a.yaml")); }, ErrorKind::Config,
      {"b.yaml:1:11: error: extends: the files extend each other in a "
       "cycle: a.yaml -> b.yaml -> a.yaml"});
  expect(
      "workers: 2\nextends: base.yaml\nnmae: d\n",
      {"base.yaml:1:1: error: sede", "c.yaml:3:1: error: nmae"});
  for (const char* wrong : {"", "{a: 1}", "[[a]]", "[]", "\"\""}) {
    SCOPED_TRACE(wrong);
    expect(formatted("workers: 2\nextends: {}\n", wrong), {"error: extends: expected a file"});
  }
}

TEST(ConfigFile, MissingOnesSayWhereTheyWereLookedFor) {
  const TempFolder here, there;
  there.add("mlp.yaml", "workers: 2\n");
  const ConfigContext context{{there.path()}, 0};
  EXPECT_EQ(reading_error("mlp", {}, context).second, "");
  EXPECT_EQ(reading_error("mlp.yaml", {}, context).second, "");
  EXPECT_EQ(
      reading_error("mpl.yaml", {}, context),
      Thrown(
          66, "configuration 'mpl.yaml' was not found; looked for mpl.yaml, " +
                  there.file("mpl.yaml") + "; did you mean 'mlp.yaml'?"));
  expect_error([&] { read_config(here.path()); }, ErrorKind::MissingInput, {"is a folder"});
}

TEST(ConfigFile, FoldersFollowTheEnvironmentAndTheProgram) {
  ::setenv("ABTRAIN_CONFIGS", "/a::/b", 1);
  const auto folders = config_folders("/opt/ab/bin/abtrain");
  ::unsetenv("ABTRAIN_CONFIGS");
  EXPECT_EQ(
      folders, (std::vector<std::string>{
                   "/a", "/b", "configs", "/opt/ab/share/abtrain/configs", "/opt/configs"}));
  // A program in SOURCE/build/release.
  EXPECT_EQ(config_folders("/src/build/release/abtrain").back(), "/src/configs");
  EXPECT_EQ(config_folders(""), (std::vector<std::string>{"configs"}));
}

TEST(Launcher, ItsProcessesAreTheWorkers) {
  EXPECT_EQ(read_config("", {}, {{}, 4}).workers, 4);
  EXPECT_EQ(read_config("", {"workers=4"}, {{}, 4}).workers, 4);
  EXPECT_EQ(
      reading_error("", {"workers=2"}, {{}, 4}).second,
      "--set workers=2: error: workers: the launcher has started 4 processes, "
      "got 2 (under a launcher, leave the key out)");
  // What a file says is for a start without a launcher.
  const TempFolder folder;
  const std::string file = folder.add("a.yaml", "workers: 2\n");
  std::vector<std::string> notes;
  EXPECT_EQ(read_config(file, {}, {.launched = 4, .notes = &notes}).workers, 4);
  EXPECT_EQ(
      notes,
      std::vector<std::string>{"workers: the 4 processes of the launcher instead of 2, so a step "
                               "takes 256 examples instead of 128"});
  EXPECT_EQ(read_config(file).workers, 2);
}

TEST(Launcher, AFilesGroupSizeGivesWayWhereItDoesNotFit) {
  const TempFolder folder;
  const std::string file = folder.add("a.yaml", "workers: 4\nmethod: {group_size: 2}\n");
  std::vector<std::string> notes;
  const auto group_size = [&](int launched, const std::vector<std::string>& sets = {}) {
    notes.clear();
    return read_config(file, sets, {.launched = launched, .notes = &notes}).method.group_size;
  };
  EXPECT_EQ(group_size(8), 2);
  EXPECT_EQ(notes.size(), 1U);
  EXPECT_FALSE(group_size(2).has_value());
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(
      notes[1],
      "method.group_size: auto, so 1, instead of 2, which does not fit 2 "
      "workers");
  EXPECT_EQ(group_size(3, {"method.sync=only-b", "method.group_size=1"}), 1);
  EXPECT_FALSE(group_size(1, {"method.sync=only-b"}).has_value());
  EXPECT_FALSE(group_size(3).has_value());
  // No `auto` for one: the message is about the file's own size.
  expect_error([&] { group_size(1); }, ErrorKind::Config, {"2 does not fit 1 worker"});
  // What does not fit the launcher is said once, without what follows from it.
  EXPECT_EQ(
      reading_error(file, {"workers=4"}, {.launched = 2}),
      Thrown(
          78,
          "--set workers=4: error: workers: the launcher has started 2 processes, "
          "got 4 (under a launcher, leave the key out)"));
  EXPECT_THROW(group_size(2, {"method.group_size=2"}), LocatedError);
}

TEST(Defaults, ANameIsEnough) {
  const TempFolder folder;
  const std::string file = folder.add("a.yaml", "name: x\n");
  EXPECT_EQ(read_config(file).workers, 2);  // one for each factor
  EXPECT_EQ(read_config(file, {"method.sync=only-b"}).workers, 1);
  EXPECT_EQ(read_config(file, {"method.name=ddp"}).workers, 1);
  EXPECT_EQ(read_config(file, {}, {.launched = 6}).workers, 6);
  EXPECT_NE(plan::plan_text(read_config(file)).find("memory per worker"), std::string::npos);
}

class ShortRun : public ::testing::Test {
 protected:
  RunOptions read(const std::vector<std::string>& sets, bool shortens_all = false) {
    notes_.clear();
    return read_config(folder_ / "a.yaml", sets, {.shortens_all = shortens_all, .notes = &notes_});
  }
  const TempFolder folder_;
  const std::string file_ = folder_.add(
      "a.yaml",
      "workers: 2\n"
      "method: {warmup_steps: 70, rank: {rule: ratio, ratio: 4}, "
      "anneal_steps: 20 %}\n"
      "schedule: {warmup_steps: 50}\n");
  std::vector<std::string> notes_;
};

TEST_F(ShortRun, WarmupsFitIntoTheStepsOfTheCommandLine) {
  const RunOptions o = read({"train.steps=40"});
  EXPECT_EQ(o.method.warmup_steps.value, 4);
  EXPECT_EQ(o.schedule.warmup_steps.value, 4);
  EXPECT_EQ(o.method.anneal_steps.value, 0);  // only one decomposition
  EXPECT_EQ(
      notes_, (std::vector<std::string>{
                  "schedule.warmup_steps: 4 steps instead of 50 steps, which do not "
                  "fit into train.steps 40",
                  "method.warmup_steps: 4 steps instead of 70 steps, which do not fit "
                  "into train.steps 40",
                  "method.anneal_steps: 0 steps instead of 20 %, as the last "
                  "decomposition comes after step 4 of train.steps 40"}));
  // Lengths that fit stay, and so do those of methods that have no such phase.
  const RunOptions fits = read({"train.steps=1000"});
  EXPECT_EQ(fits.method.warmup_steps.value, 70);
  EXPECT_EQ(fits.method.anneal_steps.unit, Duration::Unit::Percent);
  EXPECT_TRUE(notes_.empty());
  read({"train.steps=40", "method.name=ddp"});
  ASSERT_EQ(notes_.size(), 2U);
  EXPECT_TRUE(notes_[0].starts_with("without effect, ")) << notes_[0];
  EXPECT_TRUE(notes_[1].starts_with("schedule.warmup_steps: 4 steps")) << notes_[1];
  const RunOptions one = read({"train.steps=1"});
  EXPECT_EQ(one.method.warmup_steps.value, 0);
  EXPECT_EQ(one.schedule.warmup_steps.value, 1);
}

TEST_F(ShortRun, AnEpochHasTheStepsOfTheData) {
  folder_.add(
      "a.yaml",
      "workers: 4\ndata: {subset: 2560, batch_size: 64}\n"  // 10 steps
      "method: {group_size: 2, warmup_steps: 1 epoch}\n"
      "schedule: {warmup_steps: 3 epochs}\n");
  const RunOptions o = read({"train.steps=10"});
  EXPECT_EQ(print_duration(o.method.warmup_steps), "1 step");
  EXPECT_EQ(print_duration(o.schedule.warmup_steps), "1 step");
  EXPECT_EQ(
      notes_, (std::vector<std::string>{
                  "schedule.warmup_steps: 1 step instead of 3 epochs (30 steps), which "
                  "do not fit into train.steps 10",
                  "method.warmup_steps: 1 step instead of 1 epoch (10 steps), which do "
                  "not fit into train.steps 10"}));
  EXPECT_EQ(
      print_duration(read({"train.steps=9", "method.name=local-sgd"}).method.warmup_steps),
      "1 step");
  EXPECT_EQ(print_duration(read({"train.steps=11"}).method.warmup_steps), "1 epoch");
  EXPECT_EQ(notes_.size(), 1U);
  // Without the data, nobody knows.
  EXPECT_EQ(
      print_duration(read({"train.steps=2", "data.subset=0", "data.name=image-folder",
                           "data.root=" + (folder_ / "nowhere")})
                         .method.warmup_steps),
      "1 epoch");
  EXPECT_EQ(notes_.size(), 1U);  // of data.subset
}

TEST_F(ShortRun, WhatIsSaidBesideTheStepsStays) {
  const std::vector<std::string> sets = {
      "train.steps=40", "method.warmup_steps=60", "method.anneal_steps=0"};
  expect_error(
      [&] { read_config(folder_ / "a.yaml", sets); }, ErrorKind::Config,
      {"a warm-up of 60 steps leaves no"});
  EXPECT_EQ(read(sets, true).method.warmup_steps.value, 4);
  folder_.add("a.yaml", "workers: 2\nmethod: {warmup_steps: 70}\ntrain: {steps: 40}\n");
  EXPECT_EQ(reading_error(folder_ / "a.yaml", {}).first, 78);
}

TEST(Config, LiteralOverridesAreNotYaml) {
  const std::string name = "exp 3 # lr: [1, 'b";
  const auto read = [](const std::string& text) {
    return read_config(
        "", {"name=other"}, {.last = {literal_override("name", text, {"--name", 0, 0, ""})}});
  };
  EXPECT_EQ(read(name).name, name);
  EXPECT_EQ(read("null").name, "null");
  const auto [code, what] = error_of([&] { read("a/b"); });
  EXPECT_EQ(code, 78);
  EXPECT_EQ(
      what,
      "--name: error: name: expected a folder name, got 'a/b' (a name cannot contain slashes)");
}

TEST(Config, AFolderOfTheSameNameIsNoted) {
  const TempFolder folder;
  folder.add("shapes/data.txt", "");
  folder.add("shapes.yaml", "seed: 7\n");
  std::vector<std::string> notes;
  EXPECT_EQ(read_config(folder / "shapes", {}, {.notes = &notes}).seed, 7U);
  EXPECT_EQ(
      notes, (std::vector<std::string>{formatted(
                 "'{}' is a folder; the configuration is {}", folder / "shapes",
                 folder / "shapes.yaml")}));
}

TEST(ConfigYaml, ReadsBackToTheSameOptions) {
  RunOptions o;
  o.name = "a \"b\" \xC3\xBC";
  o.output = "null";
  o.seed = 18446744073709551615u;
  o.workers = 6;
  o.model.hidden = {1, 2, 3};
  o.method.group_size = 3;
  o.method.keep_dense = {"fc*", "*", "conv?.weight"};
  o.method.dense_share = 1.0 / 30;
  o.method.rank.rule = linalg::RankRuleName::Budget;
  o.method.rank.ratio = 1.0 / 0.3;
  o.method.warmup_steps = Duration::epochs(0.25);
  o.method.full_phase.reducer.name = "plain";
  o.optimizer.lr = 1e-5;
  o.optimizer.decay_all = true;
  o.schedule.name = optim::ScheduleName::Step;
  o.schedule.milestones = {0.1, 1.0 / 3};
  o.evaluate.every = Duration::steps(0);
  const TempFolder folder;
  const std::string yaml = to_yaml(o);
  const RunOptions read = read_config(folder.add("a.yaml", yaml));
  EXPECT_EQ(to_yaml(read), yaml);
  EXPECT_EQ(read.name, o.name);
  EXPECT_EQ(read.output, o.output);
  EXPECT_EQ(read.method.keep_dense, o.method.keep_dense);
  EXPECT_EQ(read.method.dense_share, o.method.dense_share);
  EXPECT_EQ(read.method.rank.ratio, o.method.rank.ratio);
  EXPECT_EQ(read.method.rank.rule, o.method.rank.rule);
  EXPECT_EQ(read.method.warmup_steps.value, 0.25);
  EXPECT_FALSE(read.method.rebound_steps);
  EXPECT_EQ(read.schedule.milestones, o.schedule.milestones);
}

// The names of optimizers, orders, data sets and enumerations among them.
TEST(ConfigYaml, PrintsEveryChoiceAsItIsRead) {
  RunOptions o;
  const Fields fields = fields_of(o);
  int choices = 0;
  each_key(fields.list(), [&](const std::string& key, const Field& field) {
    for (const std::string& choice : field.choices) {
      Value value;
      value.kind = Value::Kind::Scalar;
      value.text = choice;
      field.read(value, [&](const Value&, const std::string& message) {
        ADD_FAILURE() << key << ": " << message;
      });
      const std::string printed = field.print();
      EXPECT_TRUE(printed == choice || printed == formatted("\"{}\"", choice))
          << key << ": " << choice << " is printed as " << printed;
      ++choices;
    }
  });
  EXPECT_GT(choices, 100);
}

TEST(ConfigCheck, TellsWhichKeysConflict) {
  RunOptions o;
  o.workers = 4;
  EXPECT_TRUE(check(o).empty());
  o.method.full_rank_steps = Duration::epochs(1);
  o.method.sync_every = Duration::epochs(1);
  ASSERT_EQ(check(o).size(), 1u);
  EXPECT_EQ(check(o)[0].keys.front(), "method.full_rank_steps");
  // Units that differ are compared when the steps of an epoch are known.
  o.method.sync_every = Duration::steps(1);
  EXPECT_TRUE(check(o).empty());
  o.workers = 1;
  EXPECT_EQ(check(o).size(), 1u);
  o.method.sync = methods::SyncMode::OnlyB;
  EXPECT_TRUE(check(o).empty());
}

TEST(Configs, AllOfTheRepositoryAreRight) {
  const std::string configs = std::string(ABTRAIN_SOURCE_DIR) + "/configs";
  // ImageNet's place is taken by a folder with an image a worker.
  const TempFolder images;
  data::add_image_folder(images, /*classes=*/2, /*train=*/8, /*val=*/1);
  images.add("gcide.dict", std::string(2'000'000, '\x7f'));  // a text, or tokens
  int count = 0;
  for (const auto& entry : fs::directory_iterator(configs)) {
    if (entry.path().extension() == ".yaml") {
      RunOptions o = read_config(entry.path().string());
      EXPECT_EQ(o.name, entry.path().stem().string());
      if (o.data.name == "image-folder") {
        EXPECT_EQ(o.workers * o.data.batch_size, 4096);
        o.data.root = images.path();
        o.data.batch_size = 1;
      }
      if (data::is_text(o.data)) {
        const bool is_bytes = o.data.tokens == data::TokenType::Bytes;
        o.data.root = images / (o.data.name != "text" ? ""
                                : is_bytes            ? "gcide.dict"
                                                      : "tokens.bin");
        o.data.test.reset();
      }
      EXPECT_NE(plan::plan_text(o).find("memory per worker"), std::string::npos);
      ++count;
    }
  }
  EXPECT_GE(count, 16);
}

// What is compared has one network, data, length and schedule, and one
// optimizer but where the method brings its own, or where that is the scheme.
TEST(Configs, ComparedOnesDifferInTheirSchemeAlone) {
  const std::string folder = std::string(ABTRAIN_SOURCE_DIR) + "/configs/compare";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    RunOptions o = read_config(entry.path().string());
    EXPECT_EQ(o.name, entry.path().stem().string());
    const bool on_gpu = o.name.starts_with("cifar10_");
    RunOptions base = read_config(folder + (on_gpu ? "/cifar10_base.yaml" : "/base.yaml"));
    if (on_gpu) {
      // Its scheme is that of the file without the prefix.
      const std::string scheme = o.name.substr(std::string("cifar10_").size());
      const RunOptions small = read_config(folder + "/" + scheme + ".yaml");
      EXPECT_EQ(o.reducer.name, small.reducer.name) << o.name;
      EXPECT_EQ(o.reducer.bits, small.reducer.bits) << o.name;
      EXPECT_EQ(o.method.name, small.method.name) << o.name;
      EXPECT_EQ(o.train.steps, 0) << o.name;
    }
    base.name = o.name;
    base.reducer = o.reducer;
    base.method = o.method;
    if (o.method.name == "diloco" || o.optimizer.name == "muon") {
      base.optimizer = o.optimizer;
    }
    EXPECT_EQ(to_yaml(o), to_yaml(base)) << o.name;
    EXPECT_NE(plan::plan_text(o).find("memory per worker"), std::string::npos);
    ++count;
  }
  EXPECT_EQ(count, 47);
}

TEST(Configs, PublishedSchedulesInSteps) {
  struct Row {
    const char* config;
    std::int64_t steps, warmup, sync_every, full_rank, rebound, global_batch;
    methods::SyncMode sync;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"vgg16_cifar10", 15000, 4330, 759, 60, 267, 1024, methods::SyncMode::OnlyB},
           {"resnet50_imagenet", 45000, 9300, 3000, 300, 750, 4096, methods::SyncMode::WithStale},
           {"vit_b16_imagenet", 45000, 12300, 2180, 300, 750, 4096, methods::SyncMode::OnlyB}}) {
    const RunOptions o =
        read_config(std::string(ABTRAIN_SOURCE_DIR) + "/configs/" + row.config + ".yaml");
    RunLength length;
    length.steps = o.train.steps;
    const methods::PhasePlan plan = methods::make_phase_plan(o.method, length);
    EXPECT_EQ(o.train.steps, row.steps);
    EXPECT_EQ(plan.warmup, row.warmup);
    EXPECT_EQ(plan.interval, row.sync_every);
    EXPECT_EQ(plan.full_rank, row.full_rank);
    EXPECT_EQ(methods::make_ramp(o.method, plan, length).steps, row.rebound);
    EXPECT_EQ(o.workers * o.data.batch_size, row.global_batch);
    EXPECT_EQ(o.method.sync, row.sync);
  }
}

TEST(Configs, TheExampleSaysWhatTheDesignSays) {
  const RunOptions o =
      read_config(std::string(ABTRAIN_SOURCE_DIR) + "/configs/fashion_mnist_mlp.yaml");
  EXPECT_EQ(o.workers, 4);
  EXPECT_EQ(o.data.batch_size, 64);
  EXPECT_EQ(o.method.group_size, 2);
  EXPECT_EQ(o.method.warmup_steps.value, 70);
  EXPECT_EQ(o.method.sync_every.value, 110);
  EXPECT_EQ(o.method.full_rank_steps.value, 10);
  EXPECT_EQ(o.method.rank.rank, 48);
  EXPECT_EQ(o.train.clip_norm, 1);
}

}  // namespace
}  // namespace abtrain::config
