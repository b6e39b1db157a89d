// Times encoding and decoding of each gradient compression beside a training
// step of the network that the gradients come from; the two take turns.
//   bench_compress [--model NAME] [--width X] [--batch N] [--members N]
//                  [--threads N] [--rounds N] [--device cpu|cuda]
//                  [--precision fp32|bf16] [--schemes fp32,thc,...]
//                  [--bucket MB] [--json]
// Default: vgg16-small with 10 million parameters on CIFAR-10's shape, batch
// 128. A step is one worker's forward and backward pass and SGD, on one random
// batch.
//
// A scheme averages that batch's gradients over a group of `members`, of which
// only this one is real: the others are assumed to send the same (loopback.h).
// Collectives are therefore copies in memory; they are timed apart and not
// counted. Figures are medians over the rounds without the first, in which the
// residuals are still zero. "bits" is the payload per coordinate, "sent" what a
// worker sends per coordinate; GB/s is bytes of fp32 gradients per second of
// encoding and decoding together.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "compress/gradient_exchange.h"
#include "compress/schemes.h"
#include "compress_schemes.h"
#include "device.h"
#include "device/memory.h"
#include "device/tune.h"
#include "loopback.h"
#include "methods/gradient_reduction.h"
#include "training.h"

namespace {

using namespace abtrain;

struct Arguments {
  std::string model = "vgg16-small";
  double width = 0.825;
  std::int64_t batch = 128;
  int members = 4;
  int threads = 1;
  int rounds = 6;
  std::string device = "cpu";
  std::string precision = "fp32";
  std::vector<std::string> schemes;
  double bucket_mb = 25;
  bool json = false;
};

// One scheme with its state and its times.
class Measured {
 public:
  Measured(
      const bench::Scheme& scheme, const Arguments& a, std::vector<compress::Slot> slots,
      at::Tensor gradients, comm::Communicator& group)
      : name_(scheme.name),
        options_(scheme.options),
        slots_(std::move(slots)),
        gradients_(gradients),
        group_(group) {
    options_.bucket_mb = a.bucket_mb;
    exchange_.emplace(options_, /*seed=*/1);
    exchange_->bind(slots_, gradients_, group_);
  }

  // Runs one exchange; `exact` holds the gradients to average.
  void step(std::int64_t t, const at::Tensor& exact) {
    const at::NoGradGuard no_grad;
    gradients_.copy_(exact);
    const compress::Costs before = exchange_->costs();
    exchange_->finish(t);
    const compress::Costs& after = exchange_->costs();
    if (t > 0) {
      encode_.push_back(1e3 * (after.encode - before.encode));
      decode_.push_back(1e3 * (after.decode - before.decode));
    }
  }

  nlohmann::ordered_json row(double step_ms) const {
    const auto numel = static_cast<double>(gradients_.numel());
    const double encode = bench::median(encode_);
    const double decode = bench::median(decode_);
    const auto reducer = compress::make_reducer(options_, 1);
    reducer->bind(compress::make_buckets(slots_, options_.bucket_mb));
    const compress::Volume volume =
        reducer->volume({group_.size(), group_.rank()}, /*dense=*/false);
    const double seconds = 1e-3 * (encode + decode);
    return {
        {"scheme", name_},
        {"encode_ms", encode},
        {"decode_ms", decode},
        {"share_of_step", (encode + decode) / step_ms},
        {"payload_bits", static_cast<double>(volume.payload_bits) / numel},
        {"sent_bits", 8 * static_cast<double>(volume.bytes) / numel},
        {"gigabytes_per_second", seconds > 0 ? 4e-9 * numel / seconds : 0}};
  }

 private:
  std::string name_;
  compress::ReducerOptions options_;
  std::vector<compress::Slot> slots_;
  at::Tensor gradients_;
  comm::Communicator& group_;
  std::optional<compress::GradientExchange> exchange_;
  std::vector<double> encode_, decode_;
};

int usage(const std::string& what) {
  std::fprintf(
      stderr,
      "bench_compress: %s\nusage: bench_compress [--model NAME] [--width X] "
      "[--batch N] [--members N] [--threads N] [--rounds N] [--device "
      "cpu|cuda] [--precision fp32|bf16] [--schemes NAME,NAME] [--bucket MB] "
      "[--json]\n",
      what.c_str());
  return 2;
}

// Returns "" if all arguments are valid, else what is wrong.
std::string read_arguments(int argc, char** argv, Arguments& a) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--json") {
      a.json = true;
      continue;
    }
    if (i + 1 == argc) {
      return name + ": unknown option, or its value is missing";
    }
    const std::string value = argv[++i];
    if (name == "--model") {
      a.model = value;
    } else if (name == "--width") {
      a.width = std::atof(value.c_str());
    } else if (name == "--batch") {
      a.batch = std::atoll(value.c_str());
    } else if (name == "--members") {
      a.members = std::atoi(value.c_str());
    } else if (name == "--threads") {
      a.threads = std::atoi(value.c_str());
    } else if (name == "--rounds") {
      a.rounds = std::atoi(value.c_str());
    } else if (name == "--device") {
      a.device = value;
    } else if (name == "--precision") {
      a.precision = value;
    } else if (name == "--schemes") {
      a.schemes = split_text(value, ',');
    } else if (name == "--bucket") {
      a.bucket_mb = std::atof(value.c_str());
    } else {
      return name + ": unknown option";
    }
  }
  const bool fits = a.width > 0 && a.batch > 0 && a.members > 1 && a.threads > 0 && a.rounds > 1 &&
                    a.bucket_mb >= 0;
  return fits ? "" : "a number is out of range";
}

void measure(const Arguments& a) {
  const at::Device device = bench::device_of(a.device);
  device::tune(device, /*shapes_stay=*/true);
  at::set_num_threads(a.threads);
  nn::ModelOptions model;
  model.name = a.model;
  model.width = a.width;
  optim::OptimizerOptions sgd;
  sgd.name = "sgd";
  sgd.weight_decay = 0;
  bench::Training training(
      model, {3, 32, 32, 10}, a.batch, sgd, a.precision == "bf16" ? at::kBFloat16 : at::kFloat,
      1e-3, device);
  const auto step = [&] { return training.gradients() + training.update(); };
  step();  // warm-up: workspaces, choice of algorithms
  const at::Tensor exact = training.block().gradients().detach().clone();
  const at::Tensor gradients = exact.clone();
  const auto slots = methods::slots_of(training.block());
  bench::Loopback group(a.members);

  std::deque<Measured> schemes;
  for (const bench::Scheme& scheme : bench::all_schemes()) {
    if (a.schemes.empty() || std::ranges::find(a.schemes, scheme.name) != a.schemes.end()) {
      schemes.emplace_back(scheme, a, slots, gradients, group);
    }
  }
  std::vector<double> steps;
  for (int round = 0; round <= a.rounds; ++round) {
    steps.push_back(step());
    for (Measured& scheme : schemes) {
      scheme.step(round, exact);
    }
  }
  const double step_ms = bench::median(steps);
  std::vector<nlohmann::ordered_json> rows;
  for (const Measured& scheme : schemes) {
    rows.push_back(scheme.row(step_ms));
  }
  if (a.json) {
    std::printf(
        "%s\n", nlohmann::ordered_json({{"model", a.model},
                                        {"parameters", exact.numel()},
                                        {"batch", a.batch},
                                        {"members", a.members},
                                        {"threads", a.threads},
                                        {"device", a.device},
                                        {"precision", a.precision},
                                        {"step_ms", step_ms},
                                        {"schemes", rows}})
                    .dump(1)
                    .c_str());
    return;
  }
  std::printf(
      "%s, %s parameters, batch %lld, %s, %s, %d threads: %.1f ms per step; %d "
      "members\n\n| scheme | encode, ms | decode, ms | share of the step | "
      "bits | sent | GB/s |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: "
      "|\n",
      a.model.c_str(), with_commas(exact.numel()).c_str(), static_cast<long long>(a.batch),
      a.device.c_str(), a.precision.c_str(), a.threads, step_ms, a.members);
  for (const auto& row : rows) {
    std::printf(
        "| %s | %.2f | %.2f | %.1f %% | %.2f | %.2f | %.2f |\n",
        row["scheme"].get<std::string>().c_str(), row["encode_ms"].get<double>(),
        row["decode_ms"].get<double>(), 100 * row["share_of_step"].get<double>(),
        row["payload_bits"].get<double>(), row["sent_bits"].get<double>(),
        row["gigabytes_per_second"].get<double>());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  const std::string wrong = read_arguments(argc, argv, arguments);
  if (!wrong.empty()) {
    return usage(wrong);
  }
  device::keep_freed_memory();
  try {
    measure(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_compress: %s\n", error.what());
    return 1;
  }
  return 0;
}
