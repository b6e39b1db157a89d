// Gradients as a training has them: those of several workers, each on a batch
// of its own, for the same weights after some data parallel steps of a small
// CNN. Neighboring numbers of such gradients are of a size, and layers and
// workers differ, as random numbers do not.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <optional>
#include <string>
#include <vector>

#include "compress/bucket.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "methods/average.h"
#include "methods/gradient_reduction.h"
#include "nn/linear.h"
#include "nn/model.h"
#include "optim/optimizer.h"

namespace abtrain::testing {

struct RealGradients {
  std::vector<compress::Slot> slots;
  std::vector<at::Tensor> of_worker;  // flat, fp32
};

// Nothing where the data set is not on this machine. Two convolutions on images
// of 32 x 32 (28 x 28 ones are padded), two linear layers, 268 thousand
// parameters; batches of 64, SGD with momentum 0.9 at a rate of 0.05.
inline std::optional<RealGradients> real_gradients(
    int workers, int steps, const std::string& data_name = "fashion-mnist") {
  data::DataOptions data_options;
  data_options.name = data_name;
  if (data::find_dataset(data_options.name, data_options.root).found_in.empty()) {
    return {};
  }
  // Layers this small gain nothing from threads, and others may want the cores.
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const data::Dataset dataset = data::load_dataset(data_options);
  const data::Augment augment(data_options, dataset, 1);
  const nn::ConvOptions first{.kernel = 3, .padding = dataset.height == 28 ? 3 : 1};
  auto layers = std::make_unique<nn::Sequential>();
  layers->add("conv1", nn::conv2d(dataset.channels, 16, first));
  layers->add("relu1", nn::relu());
  layers->add("pool1", nn::max_pool(2, 2));
  layers->add("conv2", nn::conv2d(16, 32, nn::ConvOptions{}));
  layers->add("relu2", nn::relu());
  layers->add("pool2", nn::max_pool(2, 2));
  layers->add("flatten", nn::flatten());
  layers->add("fc1", nn::linear(32 * 8 * 8, 128));
  layers->add("relu3", nn::relu());
  layers->add("fc2", nn::linear(128, dataset.classes));
  nn::Model model({std::move(layers), {}});
  model.initialize(nn::InitName::Kaiming, 1);
  optim::OptimizerOptions sgd;
  sgd.name = std::string("sgd");
  sgd.weight_decay = 0;
  const auto optimizer = optim::make_optimizer(sgd);
  optim::ParameterBlock block(methods::dense_parameters(model), true, optimizer->moments());
  optim::Rates rates(at::kCPU);
  rates.set(0.05, 1);

  RealGradients result;
  result.slots = methods::slots_of(block);
  constexpr std::int64_t kBatch = 64;
  std::int64_t next = 0;
  for (int t = 0; t <= steps; ++t) {
    result.of_worker.clear();
    for (int w = 0; w < workers; ++w) {
      const data::Batch batch = augment.evaluation(dataset.train, next, next + kBatch);
      next += kBatch;
      block.zero_gradients();
      at::cross_entropy_loss(model.forward(batch.inputs, true), batch.labels).backward();
      result.of_worker.push_back(block.gradients().clone());
    }
    if (t < steps) {
      const at::NoGradGuard no_grad;
      block.gradients().zero_();
      for (const at::Tensor& gradient : result.of_worker) {
        block.gradients().add_(gradient, 1.0 / workers);
      }
      optimizer->step(block, rates, {});
    }
  }
  at::set_num_threads(threads);
  return result;
}

}  // namespace abtrain::testing
