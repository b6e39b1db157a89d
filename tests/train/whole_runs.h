// What tests of whole runs compare, and runs that save and go on.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/config.h"
#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "plan/traffic.h"
#include "run_folder/checkpoint.h"
#include "run_folder/checkpoint_files.h"
#include "temp_folder.h"
#include "toy_run.h"

namespace abtrain::train {

inline double largest_difference(const nn::Model& a, const nn::Model& b) {
  const auto left = testing::tensors_of(a);
  const auto right = testing::tensors_of(b);
  if (left.size() != right.size()) {
    ADD_FAILURE() << left.size() << " and " << right.size() << " tensors";
    return std::numeric_limits<double>::infinity();
  }
  std::vector<at::Tensor> differences;
  for (std::size_t i = 0; i < left.size(); ++i) {
    differences.push_back((left[i] - right[i]).abs().flatten());
  }
  return at::cat(differences).max().item<double>();
}

// All workers have the same bits and the same score.
inline void expect_one_model(const std::vector<TrainResult>& results) {
  for (const TrainResult& r : results) {
    testing::expect_same_bits(*results[0].model, *r.model);
    EXPECT_EQ(r.test.loss, results[0].test.loss);
    EXPECT_EQ(r.test.accuracy, results[0].test.accuracy);
  }
}

// Each worker has sent what the plan says, to the byte.
inline void expect_planned_traffic(
    const config::RunOptions& options, const data::Dataset& dataset, const TrainResult& result) {
  const auto plans = plan::traffic_of_workers(
      options, config::model_sizes(options, dataset)->sizes,
      config::run_length(options, dataset.train.size()));
  ASSERT_EQ(plans.size(), result.workers.size());
  for (std::size_t r = 0; r < plans.size(); ++r) {
    EXPECT_EQ(static_cast<double>(plans[r].total), result.workers[r].traffic.total())
        << "worker " << r;
  }
}

// A run that saves, and runs that go on from its checkpoints.
class SavingRun {
 public:
  SavingRun(config::RunOptions options, data::Dataset dataset, TrainHooks hooks = {})
      : options_(std::move(options)), dataset_(std::move(dataset)), hooks_(std::move(hooks)) {
    const run_folder::CheckpointWriter::Options place{
        folder_.path(), config::to_yaml(options_), 99};
    TrainInputs inputs{options_, dataset_, none_, at::kCPU};
    inputs.checkpoints = &place;
    inputs.hooks = hooks_;
    whole_ = train_threads(inputs);
  }
  const std::vector<TrainResult>& whole() const {
    return whole_;
  }
  // From what was saved after `step` steps, with options that `change` changes.
  std::vector<TrainResult> go_on(
      std::int64_t step, const std::function<void(config::RunOptions&)>& change = {}) const {
    config::RunOptions options = options_;
    if (change) {
      change(options);
    }
    const run_folder::Checkpoint from = run_folder::verified_checkpoint(
        folder_.file(formatted("{}/{}", config::kCheckpoints, run_folder::step_folder(step))));
    TrainInputs inputs{options, dataset_, none_, at::kCPU};
    inputs.resume = &from;
    inputs.hooks = hooks_;
    return train_threads(inputs);
  }
  // The same bits, losses and bytes as those of the run that was never stopped.
  void expect_whole(const std::vector<TrainResult>& results) const {
    ASSERT_EQ(results.size(), whole_.size());
    for (std::size_t r = 0; r < whole_.size(); ++r) {
      testing::expect_same_bits(*whole_[r].model, *results[r].model);
      EXPECT_EQ(whole_[r].test.loss, results[r].test.loss);
      EXPECT_EQ(whole_[0].workers[r].traffic.total(), results[0].workers[r].traffic.total());
    }
  }

 private:
  config::RunOptions options_;
  data::Dataset dataset_;
  TrainHooks hooks_;
  data::Examples none_;
  TempFolder folder_;
  std::vector<TrainResult> whole_;
};

}  // namespace abtrain::train
