// Times a training step of a model on random images (gpt-...: windows of 1024 of 50,304
// random tokens), dense or in the AB phase: the whole loop as
// `abtrain train` runs it. Prints one row: model, method,
// workers, threads per worker, median and quartiles of the step in ms.
//   bench_step MODEL dense|only-b|ab|both [--workers N] [--threads N]
//              [--side PIXELS] [--batch N] [--width X] [--ratio X] [--steps N]
//              [--device auto|cpu|cuda] [--graphs auto|on|off]
//              [--precision fp32|bf16] [--optimizer NAME] [--kernels N]
// On a GPU, with fewer than 14 --steps the run does not capture a graph. The
// host is at most one step ahead of the GPU, so its clock shows the GPU's pace.
// --kernels N also prints the N kernels that take most of the GPU's time: ms and
// launches per step of all workers; being traced, the steps themselves are slower.
#include <ATen/Parallel.h>
#include <ATen/ops/randint.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "base/error.h"
#include "config/planned_sizes.h"
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

// Of uniform tokens, in a file that is mapped while they are in use.
data::Dataset random_text(config::RunOptions& o) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("bench_step." + std::to_string(getpid()));
  o.data.name = "text";
  o.data.root = path;
  o.data.tokens = data::TokenType::Uint16;
  o.data.vocabulary = 50304;
  o.data.context = 1024;
  o.data.test_share = 0.1;
  const at::Tensor tokens = at::randint(50304, {(o.workers * o.data.batch_size * 20 + 1) * 1024});
  const at::Tensor words = tokens.to(at::kUInt16);
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(words.const_data_ptr()), words.numel() * 2);
  data::Dataset set = data::load_dataset(o.data);
  std::filesystem::remove(path);
  return set;
}

std::int64_t warm_up(const c10::Device& device) {
  return device.is_cuda() ? kGpuWarmUp : kWarmUp;
}

config::RunOptions options_of(int argc, char** argv, const c10::Device& device) {
  const auto number = [&](const char* name, double otherwise) {
    return bench::number(argc, argv, name, otherwise);
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
      bench::word(argc, argv, "--precision", "fp32") == "bf16" ? at::kBFloat16 : at::kFloat;
  const std::string graphs = bench::word(argc, argv, "--graphs", "auto");
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
  o.method.rank.multiple = config::rank_multiple(o, device.is_cuda());
  o.optimizer.name = bench::word(argc, argv, "--optimizer", o.optimizer.name.c_str());
  o.train.clip_norm = number("--clip", 0);  // 0: no clipping
  return o;
}

// Traces the GPU's kernels from the first timed step of worker 0 to its last one.
class KernelTrace {
 public:
  KernelTrace(std::int64_t first, std::int64_t last) : first_(first), last_(last) {
    // The profiler's first use must be in the thread that loaded it.
    start();
    stop();
  }

  void before_step(std::int64_t step) {
    if (step == first_) {
      start();
    } else if (step == last_) {
      stop();
    }
  }

  void print(std::size_t most) const {
    std::map<std::string, std::pair<double, std::int64_t>> found;
    for (const auto& event : result_->events()) {
      if (event.deviceType() == c10::kCUDA) {
        auto& [ms, launches] = found[event.name()];
        ms += 1e-6 * static_cast<double>(event.durationNs());
        ++launches;
      }
    }
    std::vector<std::pair<std::string, std::pair<double, std::int64_t>>> kernels(
        found.begin(), found.end());
    std::sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) {
      return a.second.first > b.second.first;
    });
    const auto steps = static_cast<double>(last_ - first_);
    for (std::size_t i = 0; i < std::min(most, kernels.size()); ++i) {
      const auto& [name, sums] = kernels[i];
      std::printf(
          "  %8.4f ms %7.1f x  %.120s\n", sums.first / steps,
          static_cast<double>(sums.second) / steps, name.c_str());
    }
  }

 private:
  void start() {
    torch::autograd::profiler::prepareProfiler(config_, activities_);
    torch::autograd::profiler::enableProfiler(config_, activities_);
  }
  void stop() {
    result_ = torch::autograd::profiler::disableProfiler();
  }

  const std::set<torch::profiler::impl::ActivityType> activities_ = {
      torch::profiler::impl::ActivityType::CUDA};
  const torch::profiler::impl::ProfilerConfig config_{
      torch::profiler::impl::ProfilerState::KINETO};
  std::int64_t first_;
  std::int64_t last_;
  std::unique_ptr<torch::autograd::profiler::ProfilerResult> result_;
};

// Seconds of each step of worker 0 after the warm-up, sorted.
std::vector<double> step_seconds(
    config::RunOptions options, std::int64_t side, const c10::Device& device,
    const train::TrainHooks& hooks) {
  const data::Dataset set =
      options.model.name.starts_with("gpt-")
          ? random_text(options)
          : random_images(
                std::max<std::int64_t>(1024, options.workers * options.data.batch_size), side);
  const data::Examples none;
  std::optional<data::DeviceCopies> copies;
  train::TrainInputs inputs{options, set, none, device};
  if (device.is_cuda() && data::device_bytes(set, none) > 0) {
    inputs.device_copies = &copies.emplace(set, none);
  }
  inputs.hooks = hooks;
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
        "[--precision fp32|bf16] [--optimizer NAME] [--kernels N]\n");
    return 2;
  }
  device::keep_freed_memory();
  try {
    const c10::Device device = bench::device_of(bench::word(argc, argv, "--device", "auto"));
    device::tune(device, mode == "dense");
    const config::RunOptions options = options_of(argc, argv, device);
    at::set_num_threads(static_cast<int>(options.train.threads));
    const auto kernels = static_cast<std::size_t>(bench::integer(argc, argv, "--kernels", 0));
    std::optional<KernelTrace> trace;
    train::TrainHooks hooks;
    if (kernels > 0) {
      trace.emplace(warm_up(device), options.train.steps - 1);
      hooks.before_step = [&](int rank, std::int64_t step, const nn::Model&) {
        if (rank == 0) {
          trace->before_step(step);
        }
      };
    }
    const std::vector<double> s =
        step_seconds(options, bench::integer(argc, argv, "--side", 32), device, hooks);
    std::printf(
        "%s %s %d %d %.2f %.2f %.2f\n", argv[1], mode.c_str(), static_cast<int>(options.workers),
        static_cast<int>(options.train.threads), 1e3 * s[s.size() / 2], 1e3 * s[s.size() / 4],
        1e3 * s[s.size() * 3 / 4]);
    if (kernels > 0) {
      trace->print(kernels);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_step: %s\n", e.what());
    return 1;
  }
}
