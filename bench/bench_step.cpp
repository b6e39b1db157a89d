// Times a training step of a model on random images, dense or in the AB phase:
// the whole loop as `abtrain train` runs it. Prints one row: model, method,
// workers, threads per worker, median and quartiles of the step in ms.
//   bench_step MODEL dense|only-b|ab|both [--workers N] [--threads N]
//              [--side PIXELS] [--batch N] [--width X] [--ratio X] [--steps N]
//              [--device auto|cpu|cuda] [--graphs auto|on|off]
//              [--precision fp32|bf16] [--optimizer NAME]
// On a GPU, with fewer than 14 --steps the run does not capture a graph. The
// host is at most one step ahead of the GPU, so its clock shows the GPU's pace.
#include <ATen/Parallel.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "device.h"
#include "device/memory.h"
#include "device/tune.h"
#include "train/trainer.h"

namespace {

using namespace abtrain;

constexpr std::int64_t kWarmUp = 3;
constexpr std::int64_t kGpuWarmUp = 10;  // for cuDNN's choices and the capture

data::Dataset random_images(std::int64_t count, std::int64_t side) {
  data::Dataset set;
  set.name = "random";
  set.channels = 3;
  set.height = set.width = 32;
  set.classes = 10;
  set.mean.assign(3, 0.5F);
  set.std.assign(3, 0.25F);
  const data::ByteImages images = {
      at::randint(256, {count, 3, side, side}, at::kByte), at::randint(10, {count}, at::kLong)};
  set.train = images;
  set.test = data::ByteImages{images.pixels.narrow(0, 0, 2), images.labels.narrow(0, 0, 2)};
  return set;
}

std::string word(int argc, char** argv, const char* name, const std::string& otherwise) {
  for (int i = 3; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) {
      return argv[i + 1];
    }
  }
  return otherwise;
}

double option(int argc, char** argv, const char* name, double otherwise) {
  const std::string text = word(argc, argv, name, "");
  return text.empty() ? otherwise : std::atof(text.c_str());
}

std::int64_t warm_up(const c10::Device& device) {
  return device.is_cuda() ? kGpuWarmUp : kWarmUp;
}

config::RunOptions options_of(int argc, char** argv, const c10::Device& device) {
  const auto number = [&](const char* name, double otherwise) {
    return option(argc, argv, name, otherwise);
  };
  const auto whole = [&](const char* name, double otherwise) {
    return static_cast<std::int64_t>(number(name, otherwise));
  };
  const std::string mode = argv[2];
  config::RunOptions o;
  o.workers = whole("--workers", 1);
  o.train.threads = whole("--threads", 2);
  o.model.name = argv[1];
  o.model.width = number("--width", 1);
  o.data.batch_size = whole("--batch", 128);
  o.train.steps = whole("--steps", device.is_cuda() ? 50 : 9) + warm_up(device);
  o.train.precision =
      word(argc, argv, "--precision", "fp32") == "bf16" ? at::kBFloat16 : at::kFloat;
  const std::string graphs = word(argc, argv, "--graphs", "auto");
  if (graphs != "auto") {
    o.train.cuda_graphs = graphs == "on";
  }
  o.train.timeout = 600;
  o.evaluate.every = Duration::steps(0);
  o.method.name = mode == "dense" ? "ddp" : "ab";
  o.method.trains = mode == "both" ? methods::Trains::Both : methods::Trains::One;
  o.method.sync = mode == "only-b" ? methods::SyncMode::OnlyB : methods::SyncMode::OnlyLearned;
  o.method.sync_every = Duration::steps(1000000);
  o.method.full_rank_steps = Duration::steps(0);
  o.method.rank.rule = linalg::RankRuleName::Ratio;
  o.method.rank.ratio = number("--ratio", 20);
  o.optimizer.name = word(argc, argv, "--optimizer", o.optimizer.name);
  o.train.clip_norm = number("--clip", 0);  // 0: no clipping
  return o;
}

// Seconds of each step of worker 0 after the warm-up, sorted.
std::vector<double> step_seconds(
    const config::RunOptions& options, std::int64_t side, const c10::Device& device) {
  const data::Dataset set =
      random_images(std::max<std::int64_t>(1024, options.workers * options.data.batch_size), side);
  train::TrainInputs inputs{options, set, {}, device};
  inputs.time_steps = true;
  std::vector<double> seconds = train::train_threads(inputs)[0].step_seconds;
  seconds.erase(seconds.begin(), seconds.begin() + warm_up(device));
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[2] : "";
  if (mode != "dense" && mode != "only-b" && mode != "ab" && mode != "both") {
    std::fprintf(
        stderr,
        "usage: bench_step MODEL dense|only-b|ab|both [--workers N] [--threads N] "
        "[--side PIXELS] [--batch N] [--width X] [--ratio X] [--steps N] "
        "[--device auto|cpu|cuda] [--graphs auto|on|off] "
        "[--precision fp32|bf16] [--optimizer NAME]\n");
    return 2;
  }
  device::keep_freed_memory();
  try {
    const c10::Device device = bench::device_of(word(argc, argv, "--device", "auto"));
    device::tune(device);
    const config::RunOptions options = options_of(argc, argv, device);
    at::set_num_threads(static_cast<int>(options.train.threads));
    const std::vector<double> s =
        step_seconds(options, static_cast<std::int64_t>(option(argc, argv, "--side", 32)), device);
    std::printf(
        "%s %s %d %d %.2f %.2f %.2f\n", argv[1], mode.c_str(), static_cast<int>(options.workers),
        static_cast<int>(options.train.threads), 1e3 * s[s.size() / 2], 1e3 * s[s.size() / 4],
        1e3 * s[s.size() * 3 / 4]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_step: %s\n", e.what());
    return 1;
  }
}
