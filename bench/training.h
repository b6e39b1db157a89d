// Times one worker's training step on a random batch. Benchmarks of gradient
// exchange take their gradients from its network.
#pragma once

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "device/stream.h"
#include "methods/average.h"
#include "nn/model.h"
#include "optim/optimizer.h"

namespace abtrain::bench {

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

class Training {
 public:
  Training(
      const nn::ModelOptions& model, const data::ExampleShape& shape, std::int64_t batch,
      const optim::OptimizerOptions& optimizer, at::ScalarType precision, double lr,
      at::Device device)
      : device_(device),
        model_(nn::make_model(model, shape)),
        optimizer_(optim::make_optimizer(optimizer)) {
    model_->initialize(nn::InitName::Kaiming, 1);
    model_->to(device);
    model_->compute_in({precision});
    block_ = optim::ParameterBlock(methods::dense_parameters(*model_), true, optimizer_->moments());
    images_ = at::randn({batch, shape.channels, shape.height, shape.width})
                  .to(device)
                  .contiguous(at::MemoryFormat::ChannelsLast);
    labels_ = at::randint(shape.classes, {batch}, at::kLong).to(device);
    rates_.set(lr, 1);
  }

  optim::ParameterBlock& block() {
    return block_;
  }
  // Milliseconds of a forward and backward pass; update() times the optimizer's
  // step.
  double gradients(nn::Tape* tape = nullptr) {
    return milliseconds([&] {
      block_.zero_gradients();
      at::cross_entropy_loss(model_->forward(images_, true, tape).to(at::kFloat), labels_)
          .backward();
    });
  }
  double update() {
    return milliseconds([&] { optimizer_->step(block_, rates_, {}); });
  }
  template <class Work>
  double milliseconds(const Work& work) const {
    const auto begin = std::chrono::steady_clock::now();
    work();
    device::synchronize(device_);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  }

 private:
  at::Device device_;
  std::unique_ptr<nn::Model> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::ParameterBlock block_;
  optim::Rates rates_{device_};
  at::Tensor images_, labels_;
};

}  // namespace abtrain::bench
