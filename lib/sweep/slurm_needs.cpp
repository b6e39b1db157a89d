#include "sweep/slurm_needs.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <map>

#include "base/error.h"
#include "base/options.h"
#include "base/options_apply.h"
#include "config/check_run.h"
#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "data/dataset.h"
#include "device/devices.h"
#include "plan/finished_run.h"
#include "plan/plan.h"
#include "sweep/point_state.h"

namespace abtrain::sweep {

namespace {

constexpr double kMargin = 2;
constexpr double kStart = 120;  // seconds: starting, reading the data, evaluating
constexpr std::int64_t kRound = 5;
constexpr std::int64_t kLeast = 10;
constexpr std::int64_t kMax = 24 * 60;
constexpr double kGigabyte = 1e9;

struct Load {
  const PointRun* run = nullptr;
  data::DatasetShape shape;
  std::int64_t parameters = 0;  // of the dense model
  double steps = 0;
  // Proportional to the run's time, as far as that depends on steps, batch and model.
  double work() const {
    const config::RunOptions& o = run->options;
    return steps * static_cast<double>(o.data.batch_size * o.train.accumulate) *
           static_cast<double>(parameters);
  }
};

std::vector<Load> loads_of(const std::vector<PointRun>& runs) {
  std::map<std::string, data::DatasetShape> shapes;
  std::map<std::string, std::int64_t> parameters;
  std::vector<Load> loads;
  for (const PointRun& run : runs) {
    config::RunOptions o = run.options;
    const std::string data = to_yaml(data::fields_of(o.data));
    const std::string model = data + to_yaml(nn::fields_of(o.model));
    if (!shapes.contains(data)) {
      shapes[data] = data::dataset_shape(o.data);
    }
    const data::DatasetShape& shape = shapes[data];
    if (!parameters.contains(model)) {
      parameters[model] = nn::make_model(o.model, shape)->dense_parameters();
    }
    const auto length = config::run_length(o, shape.train - o.data.validation);
    loads.push_back({&run, shape, parameters[model], static_cast<double>(length.steps)});
  }
  return loads;
}

// Seconds of the longest point, and their source.
struct PointTime {
  double seconds = 0;
  std::string from;
  double peak = 0;  // bytes that this process used while it measured
};

// Returns the time according to the finished points; 0 seconds if there are none.
PointTime finished_time(const std::vector<Load>& loads) {
  double each = 0;
  int finished = 0;
  double most = 0;
  for (const Load& load : loads) {
    most = std::max(most, load.steps);
    if (state_of(*load.run) != PointState::Finished) {
      continue;
    }
    const JsonObject summary = plan::read_summary(load.run->folder);
    const double seconds = summary.number("/seconds/train") +
                           summary.maybe("/seconds/evaluate").value_or(0) +
                           summary.maybe("/seconds/checkpoint").value_or(0);
    each = std::max(each, seconds / std::max(1.0, summary.number("/steps")));
    ++finished;
  }
  return {
      each * most, formatted(
                       "the slowest of {} finished {} of this sweep", finished,
                       finished == 1 ? "point" : "points")};
}

PointTime measured_time(const Load& load, Log& log) {
  config::RunOptions options = load.run->options;
  ABT_CHECK(
      !needs_gpus(options) || !device::cuda_devices().empty(), MissingInput,
      "its points need GPUs, and this machine has none to measure on");
  log.info(
      "measuring some steps of point {} ({}) here for the time limit; --sbatch=--time=H:MM:SS "
      "gives it instead",
      load.run->index, load.run->label);
  auto sizes = config::model_sizes(options, load.shape);
  if (!sizes) {
    options.method = {};
    options.method.name = "ddp";
    sizes = config::model_sizes(options, load.shape);
  }
  const RunLength length = config::run_length(options, load.shape.train - options.data.validation);
  const plan::TimePlan time = plan::time_of(options, load.shape, sizes->sizes, length, {});
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return {
      time.train, formatted("point {}, {}", load.run->index, time.measured.how),
      1024.0 * static_cast<double>(used.ru_maxrss)};
}

double memory_of(const Load& load, bool gpus, bool processes) {
  const config::RunOptions& o = load.run->options;
  const data::DatasetShape& set = load.shape;
  const bool holds_images =
      !data::has_files(o.data) && !data::is_text(o.data) && !data::is_arrays(o.data);
  const double images =
      holds_images
          ? static_cast<double>((set.train + set.test) * set.channels * set.height * set.width)
          : 0;
  const auto workers = static_cast<double>(o.workers);
  return workers * kMargin * config::state_bytes(o, load.parameters) +
         (processes ? workers : 1) * ((gpus ? 4 : 1) * kGigabyte + 2 * images);
}

}  // namespace

bool needs_gpus(const config::RunOptions& options) {
  return options.device == device::DeviceChoice::Cuda || options.comm == comm::BackEnd::Nccl;
}

SlurmNeeds slurm_needs(const std::vector<PointRun>& runs, const NeedsRequest& request, Log& log) {
  const std::vector<Load> loads = loads_of(runs);
  std::vector<Load> by_steps;
  std::ranges::copy_if(loads, std::back_inserter(by_steps), [](const Load& load) {
    return load.run->options.train.seconds == 0;
  });
  const auto longest = [](const PointRun& run) { return run.options.train.seconds; };
  const double by_clock = longest(*std::ranges::max_element(runs, {}, longest));
  SlurmNeeds needs;
  needs.gpus = std::ranges::any_of(runs, needs_gpus, &PointRun::options);
  PointTime time;
  if (request.time) {
    try {
      if (!by_steps.empty()) {
        time = finished_time(by_steps);
        if (time.seconds == 0) {
          time = measured_time(*std::ranges::max_element(by_steps, {}, &Load::work), log);
        }
      }
      if (by_clock > time.seconds) {
        time = {by_clock, "train.seconds"};
      }
      const double all = static_cast<double>(request.points_per_job) *
                         (kMargin * time.seconds / request.length + kStart);
      const double rounded = std::ceil(all / 60 / kRound) * kRound;
      needs.minutes = static_cast<std::int64_t>(
          std::clamp(rounded, static_cast<double>(kLeast), static_cast<double>(kMax)));
      needs.minutes_from = formatted(
          "from {}: {} for the longest point", time.from,
          human_seconds(time.seconds / request.length));
    } catch (const std::exception& error) {
      needs.minutes = kMax;
      needs.minutes_from = "because no time is known";
      log.warning(
          "the time of a point is not known: {}. Each job asks for 24 hours; "
          "--sbatch=--time=H:MM:SS asks for less, which often starts sooner",
          error.what());
    }
  }
  // Workers are processes if all points have the same number of workers.
  const auto [least, most] =
      std::ranges::minmax(runs, {}, [](const PointRun& run) { return run.options.workers; });
  const bool processes = least.options.workers == most.options.workers;
  double memory = 1.5 * time.peak;
  for (const Load& load : loads) {
    memory = std::max(memory, memory_of(load, needs.gpus, processes));
  }
  needs.gigabytes = static_cast<std::int64_t>(std::ceil(memory / kGigabyte));
  return needs;
}

}  // namespace abtrain::sweep
