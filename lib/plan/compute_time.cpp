#include "plan/compute_time.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/mapped.h"
#include "base/random.h"
#include "config/planned_sizes.h"
#include "config/short_run.h"
#include "data/arrays/array_set.h"
#include "data/text/text_set.h"
#include "data/text/tokens.h"
#include "device/devices.h"
#include "device/memory.h"
#include "device/tune.h"
#include "methods/method_kind.h"
#include "train/setup.h"
#include "train/trainer.h"

namespace abtrain::plan {

namespace {

// Untimed first steps: cuDNN picks algorithms and CUDA graphs are captured; on the CPU, memory is
// touched for the first time.
constexpr std::int64_t kWarmUp = 3;
constexpr std::int64_t kWarmUpGpu = 10;
constexpr double kTimeout = 600;

// Enough examples for a step of `workers` workers, and of at least two (one per role of
// AB-training).
data::Dataset random_examples(
    const config::RunOptions& options, int workers, const data::DatasetShape& shape) {
  const std::int64_t step =
      std::max(workers, 2) * options.data.batch_size * options.train.accumulate;
  const std::int64_t count = std::max<std::int64_t>(512, step);
  const auto channels = static_cast<std::size_t>(shape.channels);
  data::Dataset set;
  static_cast<data::ExampleShape&>(set) = shape;
  set.name = "random";
  const at::Tensor targets = shape.regression ? at::randn({count, shape.classes}) : at::Tensor();
  if (shape.vocabulary > 0) {
    const at::Tensor tokens = at::randint(shape.vocabulary, {count, shape.context}, at::kLong);
    const at::Tensor answers = shape.regression ? targets
                               : shape.token_labels
                                   ? at::randint(shape.classes, {count, shape.context}, at::kLong)
                                   : at::randint(shape.classes, {count}, at::kLong);
    set.train = data::token_rows(tokens, answers);
  } else if (shape.context > 0) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count * shape.context + 1));
    Random random(1, RandomPurpose::Test);
    const auto tokens = static_cast<std::uint32_t>(std::min<std::int64_t>(256, shape.classes));
    std::ranges::generate(bytes, [&] { return static_cast<std::uint8_t>(random.below(tokens)); });
    const std::int64_t end = std::ssize(bytes);
    set.train = data::windows_of(
        std::make_shared<const data::Tokens>(std::move(bytes)), 0, end, shape.context);
  } else {
    set.mean.assign(channels, 0.5F);
    set.std.assign(channels, 0.25F);
    set.train = data::ByteImages{
        at::randint(256, {count, shape.channels, shape.height, shape.width}, at::kByte),
        at::randint(shape.classes, {count}, at::kLong), targets};
  }
  set.test = data::chosen(set.train, at::arange(2, at::kLong));
  return set;
}

// The configuration reduced to steps on random examples.
config::RunOptions bare(const config::RunOptions& configured, int workers) {
  config::RunOptions o = config::steps_alone(configured, workers);
  o.data.name = "random";
  o.data.subset = o.data.pool = o.data.validation = 0;
  o.data.standardize = false;
  return o;
}

// Dense steps that all workers take at the same time.
config::RunOptions dense_steps(const config::RunOptions& configured, int workers) {
  config::RunOptions o = bare(configured, workers);
  o.method = {};
  o.method.name = "ddp";
  o.model.frozen = {};
  o.model.adapter.reset();
  return o;
}

// One dense step, then only AB steps, with all layers at one ratio that stores as much as planned.
// Each worker is a group, so two workers train both roles at once.
config::RunOptions ab_steps(
    const config::RunOptions& configured, const methods::ModelSizes& sizes, int workers) {
  config::RunOptions o = bare(configured, workers);
  double whole = 0;
  double stored = 0;
  for (const methods::LayerShape& l : sizes.layers) {
    whole += static_cast<double>(l.m * l.n);
    stored += static_cast<double>(l.stored());
  }
  o.method.rank.rule = linalg::RankRuleName::Ratio;
  o.method.rank.ratio = std::max(1.0, whole / std::max(1.0, stored));
  o.method.group_size = 1;
  if (workers == 1 && !methods::has_one_role(o.method)) {
    o.method.sync = methods::SyncMode::OnlyB;  // two roles need two groups
  }
  o.method.warmup_steps = Duration::steps(1);
  o.method.sync_every = Duration::steps(1'000'000'000);
  o.method.full_rank_steps = Duration::steps(0);
  o.method.full_phase = {};
  o.method.cut_first = true;
  return o;
}

struct Measured {
  double step = 0;  // median of the slowest worker
  double svd = 0;   // total of the slowest worker
  std::optional<train::CoreUse> cores = {};
};

Measured measure(
    config::RunOptions options, const data::Dataset& images, at::Device device,
    std::int64_t steps) {
  const std::int64_t warm_up = device.is_cuda() ? kWarmUpGpu : kWarmUp;
  options.train.steps = warm_up + steps;
  options.train.seconds = 0;
  options.train.timeout = kTimeout;
  train::TrainInputs inputs{options, images, {}, device};
  inputs.time_steps = true;
  const std::vector<train::TrainResult> workers = train::train_threads(inputs);
  Measured result;
  for (const train::TrainResult& worker : workers) {
    std::vector<double> seconds(worker.step_seconds.begin() + warm_up, worker.step_seconds.end());
    const auto middle = seconds.begin() + steps / 2;
    std::ranges::nth_element(seconds, middle);
    result.step = std::max(result.step, *middle);
  }
  const std::vector<train::WorkerFigures>& figures = workers.front().workers;
  for (const train::WorkerFigures& worker : figures) {
    result.svd = std::max(result.svd, worker.seconds.svd);
  }
  result.cores = train::core_use(
      mapped(figures, &train::WorkerFigures::cores), {}, at::get_num_threads(),
      static_cast<int>(figures.size()));
  return result;
}

// Measures few steps if they are slow, many if they are fast.
Measured measure(
    const config::RunOptions& options, const data::Dataset& images, at::Device device) {
  constexpr double kSeconds = 3;
  const Measured first = measure(options, images, device, 2);
  const auto steps = static_cast<std::int64_t>(kSeconds / first.step);
  return steps <= 3 ? first : measure(options, images, device, std::min<std::int64_t>(steps, 100));
}

}  // namespace

ComputeTime measure_compute(
    const config::RunOptions& options, const data::DatasetShape& shape,
    const methods::ModelSizes& sizes, int workers) {
  device::keep_freed_memory();
  const at::Device device = device::pick_device(options.device);
  device::tune(device, !methods::kind_of(options.method).factors_weights);
  const int threads = train::threads_per_worker(options, workers);
  at::set_num_threads(threads);
  const data::Dataset images = random_examples(options, workers, shape);

  const Measured dense = measure(dense_steps(options, workers), images, device);
  std::vector<Measured> all = {dense};
  ComputeTime result{
      .dense = dense.step,
      .workers = workers,
      .how = formatted(
          "measured here, {}{}",
          workers == 1 ? "one worker" : formatted("{} workers at once", workers),
          device.is_cuda() ? " on a GPU"
                           : formatted(
                                 ", {}{}", threads,
                                 threads == 1 ? " thread per worker" : " threads per worker"))};
  if (methods::kind_of(options.method).factors_weights) {
    // An even number of workers, so that both roles get equally many.
    const int paired = workers > 1 ? workers / 2 * 2 : 1;
    config::RunOptions steps = ab_steps(options, sizes, paired);
    steps.method.rank.multiple = config::rank_multiple(options, device.is_cuda());
    const Measured ab = measure(steps, images, device);
    result.ab = ab.step;
    result.decompose = ab.svd;
    all.push_back(ab);
  }
  for (const Measured& one : all) {
    if (one.cores && one.cores->beside_others()) {
      result.warning = one.cores->warning();
    }
  }
  return result;
}

}  // namespace abtrain::plan
