// Short runs of all workers on the toy data, without files.
#pragma once

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "toy_data.h"
#include "train/trainer.h"

namespace abtrain::testing {

inline config::RunOptions toy_options(int workers, std::optional<std::int64_t> group_size) {
  config::RunOptions o;
  o.seed = 7;
  o.train.precision = at::kFloat;
  o.workers = workers;
  o.data.batch_size = 8;
  o.model.hidden = {24, 20};
  o.method.group_size = group_size;
  o.method.warmup_steps = Duration::steps(4);
  o.method.sync_every = Duration::steps(7);
  o.method.full_rank_steps = Duration::steps(2);
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 5;
  o.method.ramp = methods::RampKind::None;
  o.optimizer.lr = 1e-2;
  o.train.steps = 60;
  o.train.clip_norm = 1;
  o.train.check_replicas = 1;
  o.train.timeout = 60;
  o.evaluate.every = Duration::steps(25);
  o.train.threads = 1;
  return o;
}

// Two workers and a narrow network of the model zoo, for images of 32 x 32
// pixels.
inline config::RunOptions toy_zoo_options(const std::string& model) {
  config::RunOptions o = toy_options(2, 1);
  o.model.name = model;
  o.model.width = 0.0625;
  o.data.batch_size = 4;
  o.method.warmup_steps = Duration::steps(1);
  o.method.sync_every = Duration::steps(3);
  o.method.full_rank_steps = Duration::steps(1);
  o.method.rank.rule = linalg::RankRuleName::Ratio;
  o.method.rank.ratio = 3;
  o.optimizer.lr = 1e-3;
  o.train.steps = 7;
  o.evaluate.every = Duration::steps(0);
  return o;
}

// All workers' results, in rank order.
inline std::vector<train::TrainResult> train_with(
    const config::RunOptions& options, const data::Dataset& dataset, train::TrainHooks hooks,
    at::Device device = at::kCPU) {
  train::TrainInputs inputs{options, dataset, {}, device};
  inputs.hooks = std::move(hooks);
  return train::train_threads(inputs);
}

inline std::vector<train::TrainResult> train_all(
    const config::RunOptions& options, const data::Dataset& dataset,
    std::function<void(int, std::int64_t, nn::Model&)> before_step = {}) {
  train::TrainHooks hooks;
  hooks.before_step = std::move(before_step);
  return train_with(options, dataset, std::move(hooks));
}

// Everything that a model holds, in one order.
inline std::vector<at::Tensor> tensors_of(const nn::Model& model) {
  std::vector<at::Tensor> all;
  for (const nn::NamedWeight& w : model.weights()) {
    for (const at::Tensor& t : {w.weight->dense, w.weight->inner, w.weight->outer}) {
      if (t.defined()) {
        all.push_back(t);
      }
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    all.push_back(*p.tensor);
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    all.push_back(*b.tensor);
  }
  return all;
}

inline void expect_same_bits(const nn::Model& a, const nn::Model& b) {
  const auto left = tensors_of(a);
  const auto right = tensors_of(b);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(at::equal(left[i], right[i])) << "tensor " << i;
  }
}

}  // namespace abtrain::testing
