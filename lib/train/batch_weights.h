// The weight of each micro-batch in a step where workers have unequal batches or some labels do not
// count (data::kIgnoredLabel): its share of all labels of the step that count. With these weights,
// the mean gradient over the workers is the gradient of the mean loss over those labels, however
// they are spread over workers and micro-batches.
//
// Each worker derives the numbers of labels from the data and the workers' example orders, without
// communication. An order that gradients decide is known only to its own worker, which must then
// train alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "config/run_options.h"
#include "data/dataset.h"
#include "data/order.h"

namespace abtrain::train {

class BatchWeights {
 public:
  // `own`: this worker's order, which must outlive this object. setting.batches holds each worker's
  // batch size, in examples.
  BatchWeights(
      const config::RunOptions& options, const data::Examples& train, data::OrderSetting setting,
      const data::ExampleOrder& own);

  // Call before the micro-batches k = 0, 1, ... of step t. `group`: the consecutive workers that
  // average their gradients; null: this worker trains alone.
  void begin(std::int64_t t, const comm::Communicator* group);
  // Factor of the mean gradient of micro-batch k, applied before the mean over micro-batches and
  // workers. 0 if no label of the step counts.
  double of_gradient(std::int64_t k) const;
  // Factor of the mean loss of micro-batch k; the sum of factor times loss is the mean loss over
  // this worker's labels.
  double of_loss(std::int64_t k) const;
  // True if at least one label of this worker counts in the current step.
  bool has_labels() const {
    return own_sum_ > 0;
  }

 private:
  struct Worker {
    std::unique_ptr<data::ExampleOrder> order = {};  // null: not needed yet, or this worker's own
    std::int64_t epoch = -1;                         // the epoch that `counts` covers
    std::vector<std::int64_t> counts = {};           // labels that count, for each of its batches
  };
  std::int64_t labels_in(int worker, std::int64_t batch);

  const config::RunOptions& options_;
  const data::OrderSetting setting_;
  const data::ExampleOrder& own_order_;
  const at::Tensor counted_;  // Examples::counted_labels()
  std::vector<Worker> workers_;
  // The current step:
  std::vector<std::int64_t> own_;  // labels in each of this worker's micro-batches
  std::int64_t own_sum_ = 0;
  std::int64_t sum_ = 0;  // labels of the whole group
  int group_size_ = 1;
};

// Null if all micro-batches of all workers have the same weight. Arguments as for BatchWeights().
std::unique_ptr<BatchWeights> make_batch_weights(
    const config::RunOptions& options, const data::Examples& train, data::OrderSetting setting,
    const data::ExampleOrder& own);

}  // namespace abtrain::train
