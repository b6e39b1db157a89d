// Times what quantized Adagrad adds to a training step: encoding and decoding
// of the gradients, and the optimizer's own pass, each beside the forward and
// backward pass of the same rounds.
//   bench_adagrad [--batch N] [--members N] [--threads N] [--rounds N]
//                 [--l1 X] [--device cpu|cuda] [--json]
// Default: the mlp of fashion_mnist_mlp_qcmd.yaml (3 x 1024 on 28 x 28 pixels),
// 64 images per worker, 4 workers, of which only one is real (loopback.h):
// collectives are copies and not counted. Figures are medians over the rounds;
// "share" is relative to the whole step: passes, encoding, decoding and update.
//
// For comparison it times PyTorch's fused Adagrad on as many numbers (on the
// CPU), and a pass over the same memory that only does x += g, s += g, which is
// the least that an update can cost.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "base/error.h"
#include "compress/gradient_exchange.h"
#include "device.h"
#include "device/memory.h"
#include "device/tune.h"
#include "loopback.h"
#include "methods/gradient_reduction.h"
#include "optim/gradient_hooks.h"
#include "training.h"

namespace {

using namespace abtrain;

struct Times {
  std::vector<double> passes, encode, decode, update;
};

// Other optimizers' updates, on buffers of their own.
class Rivals {
 public:
  Rivals(std::int64_t numel, c10::Device device)
      : x_(at::zeros({numel}, device)), s_(at::zeros_like(x_)) {
    steps_ = at::zeros({}, device);
  }
  double torch(const bench::Training& training, const at::Tensor& g) {
    return training.milliseconds([&] {
      steps_.add_(1);
      at::_fused_adagrad_({x_}, {g}, {s_}, {steps_}, 0.01, 0, 0, 1e-3, false);
    });
  }
  double additions(const bench::Training& training, const at::Tensor& g) {
    return training.milliseconds([&] {
      if (!x_.is_cpu()) {
        x_.add_(g);
        s_.add_(g);
        return;
      }
      auto* const __restrict x = x_.mutable_data_ptr<float>();
      auto* const __restrict s = s_.mutable_data_ptr<float>();
      const auto* const __restrict from = g.const_data_ptr<float>();
      at::parallel_for(0, x_.numel(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          x[i] += from[i];
          s[i] += from[i];
        }
      });
    });
  }

 private:
  at::Tensor x_, s_, steps_;
};

void measure(int argc, char** argv) {
  const c10::Device device = bench::device_of(bench::word(argc, argv, "--device", "cpu"));
  device::tune(device, /*shapes_stay=*/true);
  const auto threads = static_cast<int>(bench::number(argc, argv, "--threads", 1));
  const auto members = static_cast<int>(bench::number(argc, argv, "--members", 4));
  const auto rounds = static_cast<int>(bench::number(argc, argv, "--rounds", 30));
  const auto batch = static_cast<std::int64_t>(bench::number(argc, argv, "--batch", 64));
  at::set_num_threads(threads);
  nn::ModelOptions model;
  model.name = "mlp";
  optim::OptimizerOptions adagrad;
  adagrad.name = "qcmd-adagrad";
  adagrad.l1 = bench::number(argc, argv, "--l1", 6e-5);
  bench::Training training(model, {1, 28, 28, 10}, batch, adagrad, at::kFloat, 0.01, device);
  at::Tensor gradients = training.block().gradients();
  bench::Loopback group(members);
  Rivals rivals(gradients.numel(), device);
  std::vector<double> torch, additions;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  double passes_ms = 0;

  for (const std::string quantizer : {"threshold", "ternary"}) {
    compress::ReducerOptions options;
    options.name = quantizer;
    compress::GradientExchange exchange(options, /*seed=*/1);
    exchange.bind(methods::slots_of(training.block()), gradients, group);
    // As in a run, a bucket is encoded as soon as its gradients are ready.
    const optim::GradientHooks hooks(
        training.block(), [&](std::size_t index) { exchange.ready(index); });
    Times times;
    for (int round = 0; round <= rounds; ++round) {
      const compress::Costs before = exchange.costs();
      exchange.begin(round);
      double passes = training.gradients();
      passes += training.milliseconds([&] { exchange.finish(round); });
      const compress::Costs spent = exchange.costs() - before;
      passes -= 1e3 * (spent.encode + spent.decode + spent.collective);
      const double update = training.update();
      if (round > 0) {  // the first round is a warm-up
        times.passes.push_back(passes);
        times.encode.push_back(1e3 * spent.encode);
        times.decode.push_back(1e3 * spent.decode);
        times.update.push_back(update);
        torch.push_back(device.is_cpu() ? rivals.torch(training, gradients) : 0);
        additions.push_back(rivals.additions(training, gradients));
      }
    }
    passes_ms = bench::median(times.passes);
    const double encode = bench::median(times.encode);
    const double decode = bench::median(times.decode);
    const double update = bench::median(times.update);
    const double own = encode + decode + update;
    rows.push_back(
        {{"quantizer", quantizer},
         {"passes_ms", passes_ms},
         {"encode_ms", encode},
         {"decode_ms", decode},
         {"update_ms", update},
         {"share_of_step", own / (own + passes_ms)}});
  }
  const nlohmann::ordered_json all = {
      {"parameters", gradients.numel()},
      {"batch", batch},
      {"members", members},
      {"threads", threads},
      {"device", device.str()},
      {"quantizers", rows},
      {"fused_adagrad_ms", bench::median(torch)},
      {"additions_ms", bench::median(additions)}};
  if (argc > 1 && std::strcmp(argv[argc - 1], "--json") == 0) {
    std::printf("%s\n", all.dump(1).c_str());
    return;
  }
  std::printf(
      "mlp, %s parameters, batch %lld, %s, %d threads, %d members\n\n"
      "| quantizer | passes, ms | encode | decode | update | share |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: |\n",
      with_commas(gradients.numel()).c_str(), static_cast<long long>(batch), device.str().c_str(),
      threads, members);
  for (const auto& row : rows) {
    std::printf(
        "| %s | %.2f | %.2f | %.2f | %.2f | %.1f %% |\n",
        row["quantizer"].get<std::string>().c_str(), row["passes_ms"].get<double>(),
        row["encode_ms"].get<double>(), row["decode_ms"].get<double>(),
        row["update_ms"].get<double>(), 100 * row["share_of_step"].get<double>());
  }
  std::printf(
      "\nPyTorch's fused Adagrad %.2f ms, x += g; s += g %.2f ms\n",
      all["fused_adagrad_ms"].get<double>(), all["additions_ms"].get<double>());
}

}  // namespace

int main(int argc, char** argv) {
  device::keep_freed_memory();
  try {
    measure(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_adagrad: %s\n", error.what());
    return 1;
  }
  return 0;
}
