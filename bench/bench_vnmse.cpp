// Measures how far the estimate of each gradient compression is from the true
// mean, in one step without error feedback:
//   bench_vnmse [--data NAME] [--members N] [--batch N] [--steps N]
//               [--schemes NAME,NAME]
// A small convolutional network (32 and 64 channels, 128 hidden) is trained
// data parallel for some steps (10), so that its gradients are not those of a
// random start; then every scheme averages the members' gradients of one more
// batch each. vNMSE = |estimate - mean|^2 / |mean|^2 over all numbers,
// including those of small tensors, which are sent uncompressed. For "permuted"
// the same numbers are in a random order, which is the same for all members, so
// that neighbors have nothing in common: the increase shows how much a scheme
// relies on locality. By default onebit and twobit are left out, as they need
// error feedback.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/run_workers.h"
#include "compress/gradient_exchange.h"
#include "compress_schemes.h"
#include "data/dataset.h"
#include "methods/average.h"
#include "methods/gradient_reduction.h"
#include "nn/model.h"
#include "optim/optimizer.h"

namespace {

using namespace abtrain;

struct Arguments {
  std::string data = "cifar10";
  int members = 4;
  std::int64_t batch = 16;
  int steps = 10;
  std::vector<std::string> schemes;
};

// Gradients of each member's batch after the training steps, and their slots.
struct Gradients {
  std::vector<at::Tensor> members;
  std::vector<compress::Slot> slots;
};

at::Tensor channel_values(const std::vector<float>& values) {
  return at::tensor(values).view({1, -1, 1, 1});
}

Gradients train(const Arguments& a) {
  data::DataOptions options;
  options.name = a.data;
  const data::Dataset set = data::load_dataset(options);
  const auto& train = std::get<data::ByteImages>(set.train);
  nn::ModelOptions model_options;
  model_options.name = "cnn";
  model_options.hidden = {128};
  const auto model = nn::make_model(
      model_options, {set.channels, set.height, set.width, set.classes});
  model->initialize(nn::InitName::Kaiming, 1);
  optim::OptimizerOptions sgd;
  sgd.name = "sgd";
  sgd.weight_decay = 0;
  const auto optimizer = optim::make_optimizer(sgd);
  optim::ParameterBlock block(
      methods::dense_parameters(*model), true, optimizer->moments());
  optim::Rates rates(at::kCPU);
  rates.set(0.05, 1);
  std::int64_t at = 0;
  const auto gradients_of_next_batch = [&] {
    const at::Tensor images =
        ((train.pixels.narrow(0, at, a.batch).to(at::kFloat) / 255 -
          channel_values(set.mean)) /
         channel_values(set.std))
            .contiguous(at::MemoryFormat::ChannelsLast);
    block.zero_gradients();
    at::cross_entropy_loss(
        model->forward(images, true), train.labels.narrow(0, at, a.batch))
        .backward();
    at += a.batch;
    return block.gradients().detach().clone();
  };
  Gradients result;
  for (int step = 0; step <= a.steps; ++step) {
    result.members.clear();
    at::Tensor sum = at::zeros_like(block.gradients());
    for (int i = 0; i < a.members; ++i) {
      result.members.push_back(gradients_of_next_batch());
      sum += result.members.back();
    }
    if (step < a.steps) {
      block.gradients().copy_(sum / a.members);
      optimizer->step(block, rates, {});
    }
  }
  result.slots = methods::slots_of(block);
  return result;
}

compress::Evaluation evaluate(
    const Gradients& gradients,
    compress::ReducerOptions options) {
  options.error_feedback = false;
  options.evaluate_every = 1;
  compress::Evaluation result;
  comm::run_workers(
      static_cast<int>(gradients.members.size()),
      /*timeout_seconds=*/600,
      [&](comm::Communicator& world) {
        const at::NoGradGuard no_grad;
        const at::Tensor own =
            gradients.members[static_cast<std::size_t>(world.rank())].clone();
        compress::GradientExchange exchange(options, /*seed=*/1);
        exchange.bind(gradients.slots, own, world);
        const auto evaluation = exchange.finish(0);
        if (world.rank() == 0) {
          result = evaluation.value();
        }
      });
  return result;
}

void measure(const Arguments& a) {
  at::set_num_threads(1);
  const Gradients gradients = train(a);
  Gradients permuted = gradients;
  const at::Tensor order = at::randperm(gradients.members[0].numel());
  for (at::Tensor& member : permuted.members) {
    member = member.index_select(0, order);
  }
  std::printf(
      "%s, %d members of %lld images, step %d, %s numbers\n\n"
      "| scheme | bits | vNMSE | permuted |\n| --- | ---: | ---: | ---: |\n",
      a.data.c_str(),
      a.members,
      static_cast<long long>(a.batch),
      a.steps,
      with_commas(order.numel()).c_str());
  for (const bench::Scheme& scheme : bench::all_schemes()) {
    const bool wanted =
        a.schemes.empty()
            ? scheme.name != "onebit" && scheme.name != "twobit"
            : std::ranges::find(a.schemes, scheme.name) != a.schemes.end();
    if (!wanted) {
      continue;
    }
    const compress::Evaluation here = evaluate(gradients, scheme.options);
    std::printf(
        "| %s | %.2f | %.3g | %.3g |\n",
        scheme.name.c_str(),
        here.payload_bits,
        here.vnmse,
        evaluate(permuted, scheme.options).vnmse);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--data" && !value.empty()) {
      a.data = value;
    } else if (name == "--members" && std::atoi(value.c_str()) > 1) {
      a.members = std::atoi(value.c_str());
    } else if (name == "--batch" && std::atoll(value.c_str()) > 0) {
      a.batch = std::atoll(value.c_str());
    } else if (name == "--steps" && std::atoi(value.c_str()) >= 0) {
      a.steps = std::atoi(value.c_str());
    } else if (name == "--schemes" && !value.empty()) {
      a.schemes = split_text(value, ',');
    } else {
      std::fprintf(
          stderr,
          "usage: bench_vnmse [--data NAME] [--members N] [--batch N] [--steps "
          "N] [--schemes NAME,NAME]\n");
      return 2;
    }
  }
  try {
    measure(a);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_vnmse: %s\n", error.what());
    return 1;
  }
  return 0;
}
