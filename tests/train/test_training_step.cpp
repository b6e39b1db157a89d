// Steps in the form that a GPU captures: on the CPU the same bits as operator
// by operator, on a GPU the same numbers within rounding.
#include "train/training_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "base/text.h"
#include "device/devices.h"
#include "error_of.h"
#include "nn/export_file.h"
#include "temp_folder.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

using testing::expect_same_bits;
using testing::toy_options;
using testing::train_all;
using testing::train_with;

// Who captured in which steps.
class Captures {
 public:
  TrainHooks hooks() {
    TrainHooks hooks;
    hooks.capture_on_cpu = true;
    hooks.capturing = [this](int rank, std::int64_t t) {
      const std::lock_guard lock(mutex_);
      steps_[rank].insert(t);
    };
    return hooks;
  }
  const std::set<std::int64_t>& of(int rank) {
    return steps_[rank];
  }

 private:
  std::mutex mutex_;
  std::map<int, std::set<std::int64_t>> steps_;
};

constexpr auto kFp32 = at::kFloat;
constexpr auto kBf16 = at::kBFloat16;

struct StepCase {
  std::string name;
  std::string method;
  int workers;
  std::optional<std::int64_t> group_size;
  std::int64_t accumulate;
  std::string optimizer;
  double clip_norm;
  at::ScalarType precision;
};

// Steps 0-29 dense, 30-89 AB, 90-117 dense, 118-149 AB, 150-177 dense, AB.
config::RunOptions phases(const StepCase& c) {
  config::RunOptions o = toy_options(c.workers, c.group_size);
  o.method.name = c.method;
  o.method.sync = c.workers == 1 ? methods::SyncMode::OnlyB : methods::SyncMode::OnlyLearned;
  o.method.warmup_steps = Duration::steps(30);
  o.method.sync_every = Duration::steps(60);
  o.method.full_rank_steps = Duration::steps(28);
  o.method.factor_lr_scale = 2;
  o.model.drop_rate = 0.2;
  o.optimizer.name = c.optimizer;
  o.optimizer.momentum = 0.9;
  o.optimizer.lr = c.optimizer == "sgd" ? 3e-2 : 1e-2;
  o.schedule.name = optim::ScheduleName::Cosine;
  o.train.steps = 190;
  o.train.accumulate = c.accumulate;
  o.train.clip_norm = c.clip_norm;
  o.train.label_smoothing = 0.1;
  o.train.check_replicas = 50;
  o.evaluate.every = Duration::steps(40);
  o.train.precision = c.precision;
  return o;
}

class CapturedForm : public ::testing::TestWithParam<StepCase> {};

TEST_P(CapturedForm, HasTheSameBits) {
  const StepCase& c = GetParam();
  const config::RunOptions o = phases(c);
  const data::Dataset dataset = testing::toy_dataset();
  const auto eager = train_all(o, dataset);
  Captures captures;
  const auto captured = train_with(o, dataset, captures.hooks());
  for (int r = 0; r < c.workers; ++r) {
    const auto i = static_cast<std::size_t>(r);
    expect_same_bits(*eager[i].model, *captured[i].model);
    EXPECT_EQ(eager[i].test.loss, captured[i].test.loss);
    // Anew for each layout, but not for the last one's twelve steps.
    const std::set<std::int64_t> wanted =
        c.method != "ab" ? std::set<std::int64_t>{3} : std::set<std::int64_t>{3, 33, 93, 121, 153};
    EXPECT_EQ(captures.of(r), wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CapturedForm,
    ::testing::Values(
        StepCase{"ddp", "ddp", 1, {}, 1, "adamw", 1, kFp32},
        StepCase{"ddp_sgd", "ddp", 2, {}, 3, "sgd", 0.5, kFp32},
        StepCase{"local_sgd", "local-sgd", 2, {}, 1, "adamw", 1, kFp32},
        StepCase{"diloco", "diloco", 4, {}, 3, "sgd", 1, kFp32},
        StepCase{"ab_one", "ab", 1, 1, 1, "adamw", 1, kFp32},
        StepCase{"ab", "ab", 2, 1, 1, "adamw", 0.3, kFp32},
        StepCase{"ab_sgd", "ab", 4, 2, 3, "sgd", 1, kFp32},
        StepCase{"ab_free", "ab", 2, 1, 3, "sgd", 0, kFp32},
        StepCase{"ab_muon", "ab", 2, 1, 1, "muon", 1, kFp32},
        StepCase{"ab_bf16", "ab", 4, 1, 1, "adamw", 1, kBf16}),
    [](const auto& test) { return test.param.name; });

// Two workers train the small network of a user's file.
struct ExportedRun {
  explicit ExportedRun(double clip_norm)
      : options(phases({"", "ab", 2, 1, 1, "adamw", clip_norm, kFp32})) {
    options.model.name = "exported";
    options.method.rank.rank = 2;  // more would not save anything
    options.model.file = folder.file("model.pt2");
    testing::small_export().write(*options.model.file);
    // Images of 1 x 2 x 3.
    dataset.height = 2;
    for (auto [examples, count, stream] :
         {std::tuple{&dataset.train, 256, 1U}, {&dataset.test, 101, 2U}}) {
      data::ByteImages images = testing::toy_images(count, 1, 3, stream);
      images.pixels = images.pixels.narrow(2, 0, 2).contiguous();
      *examples = images;
    }
  }
  TempFolder folder;
  config::RunOptions options;
  data::Dataset dataset = testing::toy_dataset(256, 1, 3);
};

TEST(TrainingStep, OfAnExportedModel) {
  const ExportedRun run(0.3);
  const auto eager = train_all(run.options, run.dataset);
  Captures captures;
  const auto captured = train_with(run.options, run.dataset, captures.hooks());
  EXPECT_EQ(captures.of(0), (std::set<std::int64_t>{3, 33, 93, 121, 153}));
  EXPECT_TRUE(eager[0].model->weights()[0].weight->is_factored());
  expect_same_bits(*eager[0].model, *captured[0].model);
}

// The sigmoid's gradient needs its result, which the next operator overwrites.
TEST(TrainingStep, AnErrorOfTheBackwardPassNamesTheModelsFile) {
  const ExportedRun run(0);
  const auto node = [](const char* target, const char* self, const char* output) {
    const std::string name = formatted("{{\"name\":\"{}\"}}", self);
    std::vector<testing::NodeInput> inputs = {{"self", "as_tensor", name}};
    if (std::string(self) == "s") {
      inputs.push_back({"other", "as_int", "1"});
    }
    return testing::node_json(target, inputs, output);
  };
  testing::small_export(
      node("torch.ops.aten.sigmoid.default", "a", "s") + "," +
      node("torch.ops.aten.add_.Tensor", "s", "b"))
      .write(*run.options.model.file);
  expect_error(
      [&] { train_all(run.options, run.dataset); }, ErrorKind::Config,
      {"model.file", "model.pt2", "the backward pass failed", "inplace"});
}

TEST(TrainingStep, ShortPhasesAreNotCaptured) {
  config::RunOptions o = phases({"", "ab", 2, 1, 1, "adamw", 1, kFp32});
  o.method.full_rank_steps = Duration::steps(10);
  Captures captures;
  train_with(o, testing::toy_dataset(), captures.hooks());
  // AB from 30, 100 and 160 on.
  EXPECT_EQ(captures.of(0), (std::set<std::int64_t>{3, 33, 103, 163}));
  EXPECT_EQ(captures.of(1), captures.of(0));
}

TEST(TrainingStep, OnTheCpuNothingIsCaptured) {
  const config::RunOptions o = phases({"", "ddp", 1, {}, 1, "adamw", 1, kFp32});
  Captures captures;
  TrainHooks hooks = captures.hooks();
  hooks.capture_on_cpu = false;
  train_with(o, testing::toy_dataset(), hooks);
  EXPECT_TRUE(captures.of(0).empty());
}

// Where gradients can be sent early, both forms are timed, and the faster one stays.
TEST(TrainingStep, KeepsTheFasterForm) {
  config::RunOptions o = phases({"", "ddp", 2, {}, 1, "adamw", 1, kFp32});
  const data::Dataset dataset = testing::toy_dataset();
  const auto eager = train_all(o, dataset);
  for (const bool graphs_win : {false, true}) {
    Captures captures;
    TrainHooks hooks = captures.hooks();
    std::atomic<std::int64_t> captured_steps = 0;
    hooks.seconds_of_step = [&](bool captured) {
      captured_steps += captured ? 1 : 0;
      return captured == graphs_win ? 1.0 : 1.5;
    };
    const auto results = train_with(o, dataset, hooks);
    expect_same_bits(*eager[0].model, *results[0].model);
    EXPECT_EQ(captures.of(0), std::set<std::int64_t>{13});
    // Of 190 steps, 13 come before; two workers.
    EXPECT_EQ(captured_steps, 2 * (graphs_win ? 177 : TrainingStep::kTrialSteps + 1));
  }
}

// Where graphs were asked for, nothing is timed, and they stay.
TEST(TrainingStep, GraphsThatWereAskedForStay) {
  config::RunOptions o = phases({"", "ddp", 2, {}, 1, "adamw", 1, kFp32});
  o.train.cuda_graphs = true;
  Captures captures;
  TrainHooks hooks = captures.hooks();
  std::atomic<std::int64_t> captured_steps = 0;
  hooks.seconds_of_step = [&](bool captured) {
    captured_steps += captured ? 1 : 0;
    return 1.0;
  };
  train_with(o, testing::toy_dataset(), hooks);
  EXPECT_EQ(captures.of(0), std::set<std::int64_t>{3});
  EXPECT_EQ(captured_steps, 2 * 187);  // of 190
}

// One worker's captures fail, its steps do not.
TEST(TrainingStep, AFailedCaptureGoesOnWithout) {
  const config::RunOptions o = phases({"", "ab", 2, 1, 1, "adamw", 1, kFp32});
  const data::Dataset dataset = testing::toy_dataset();
  const auto eager = train_all(o, dataset);
  Captures captures;
  TrainHooks hooks = captures.hooks();
  hooks.capturing = [note = hooks.capturing](int rank, std::int64_t t) {
    note(rank, t);
    if (rank == 1 && t == 33) {
      throw device::CaptureFailed("as the test wants");
    }
  };
  const auto results = train_with(o, dataset, hooks);
  expect_same_bits(*eager[0].model, *results[0].model);
  expect_same_bits(*eager[1].model, *results[1].model);
  EXPECT_EQ(captures.of(1), captures.of(0));  // they meet all the same
}

TEST(TrainingStep, AFailedCaptureIsFatalWhereGraphsWereAskedFor) {
  config::RunOptions o = phases({"", "ab", 2, 1, 1, "adamw", 1, kFp32});
  o.train.cuda_graphs = true;
  TrainHooks hooks;
  hooks.capture_on_cpu = true;
  hooks.capturing = [](int rank, std::int64_t) {
    if (rank == 0) {
      throw device::CaptureFailed("as the test wants");
    }
  };
  EXPECT_EQ(
      error_of([&] { train_with(o, testing::toy_dataset(), hooks); }),
      Thrown(
          78, "train.cuda_graphs: on, but step 4 could not be captured on cpu: as the test wants"));
}

// Groups of one meet in no AB step: only the capture itself brings them
// together.
TEST(TrainingStep, NobodyWorksWhileAnotherCaptures) {
  config::RunOptions o = phases({"", "ab", 4, 1, 1, "adamw", 1, kFp32});
  o.train.steps = 80;
  o.train.check_replicas = 0;
  std::array<std::atomic<std::int64_t>, 4> at_step{};
  std::atomic<int> captured = 0;
  std::atomic<bool> apart = true;
  TrainHooks hooks;
  hooks.capture_on_cpu = true;
  hooks.before_step = [&](int rank, std::int64_t t, nn::Model&) {
    at_step[static_cast<std::size_t>(rank)] = t;
    if (t == 34 && captured != 4) {
      apart = false;  // went on before all had captured
    }
  };
  hooks.capturing = [&](int, std::int64_t t) {
    if (t != 33) {
      return;
    }
    for (const auto& step : at_step) {
      if (step != t) {
        apart = false;  // has not come yet, or has gone on
      }
    }
    ++captured;
  };
  train_with(o, testing::toy_dataset(), hooks);
  EXPECT_EQ(captured, 4);
  EXPECT_TRUE(apart);
}

class GpuSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_devices().empty()) {
      GTEST_SKIP() << "no CUDA device here";
    }
  }
  // Some of cuDNN's kernels add in no fixed order: numbers agree as long as the run is short.
  static void expect_the_same_numbers(
      config::RunOptions o, const data::Dataset& dataset, int captures) {
    const at::Device gpu(at::kCUDA, 0);
    std::mutex mutex;
    int captured = 0;
    TrainHooks hooks;
    hooks.capturing = [&](int, std::int64_t) {
      const std::lock_guard lock(mutex);
      ++captured;
    };
    o.method.warmup_steps = Duration::steps(24);
    o.train.steps = 50;
    o.train.check_replicas = 0;
    o.optimizer.lr = 1e-4;
    o.train.cuda_graphs = false;
    const auto eager = train_with(o, dataset, hooks, gpu);
    EXPECT_EQ(captured, 0);
    o.train.cuda_graphs = true;
    const auto graphs = train_with(o, dataset, hooks, gpu);
    EXPECT_EQ(captured, captures);
    const auto& left = eager[0].model->weights();
    const auto& right = graphs[0].model->weights();
    for (std::size_t i = 0; i < left.size(); ++i) {
      // A step moves a number by up to lr: 50 steps of 1e-4 in all.
      const at::Tensor difference = left[i].weight->merged() - right[i].weight->merged();
      EXPECT_LT(difference.abs().max().item<double>(), 5e-3) << left[i].name;
    }
    EXPECT_NEAR(eager[0].test.loss, graphs[0].test.loss, 0.05 * eager[0].test.loss);
    expect_one_model(graphs);
  }
};

class GpuTrainingStep : public GpuSteps, public ::testing::WithParamInterface<StepCase> {};

// A step of a small conv net, dense and factored, workers on one GPU: both forms queue the same
// kernels.
TEST_P(GpuTrainingStep, GraphsGiveTheSameNumbers) {
  config::RunOptions o = phases(GetParam());
  o.model.name = "vgg16-small";
  o.model.width = 0.125;
  o.method.rank.rank = 4;
  expect_the_same_numbers(
      o, testing::toy_dataset(256, 3, 32),
      (GetParam().method == "ab" ? 2 : 1) * GetParam().workers);
}

TEST_F(GpuSteps, OfAnExportedModel) {
  const ExportedRun run(1);
  expect_the_same_numbers(run.options, run.dataset, 4);
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuTrainingStep,
    ::testing::Values(
        StepCase{"ddp", "ddp", 1, {}, 1, "adamw", 1, kFp32},
        StepCase{"ddp_bf16", "ddp", 2, {}, 3, "sgd", 1, kBf16},
        StepCase{"local_sgd", "local-sgd", 2, {}, 1, "adamw", 1, kFp32},
        StepCase{"diloco", "diloco", 4, {}, 3, "sgd", 1, kFp32},
        StepCase{"ab_one", "ab", 1, 1, 1, "adamw", 1, kFp32},
        StepCase{"ab_workers", "ab", 4, 2, 2, "adamw", 1, kFp32},
        StepCase{"ab_bf16", "ab", 2, 1, 1, "sgd", 0, kBf16},
        StepCase{"ab_muon", "ab", 2, 1, 1, "muon", 1, kFp32}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace abtrain::train
