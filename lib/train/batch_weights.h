// What each micro-batch counts for in a step where workers have unequal batches, or where some
// labels do not count (data::kIgnoredLabel): its part of all labels of the step that do. The mean
// over the workers of gradients that are weighted in this way is the gradient of the mean loss over
// those labels, whatever workers and micro-batches they are spread over.
//
// The numbers of labels follow from the data and the orders of the workers, without a message. An
// order that gradients decide is known only to its own worker, which must then train alone.
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
  // `own`: the order of this worker, which must outlive this object. setting.batches has the
  // examples in a batch of each worker.
  BatchWeights(
      const config::RunOptions& options, const data::Examples& train, data::OrderSetting setting,
      const data::ExampleOrder& own);

  // To be called before the micro-batches k = 0, 1, ... of step t. Gradients are averaged over
  // these consecutive workers; null: this worker trains alone.
  void begin(std::int64_t t, const comm::Communicator* group);
  // What the mean gradient of micro-batch k is multiplied by, before the mean over micro-batches
  // and workers is taken. 0 if no label of the step counts.
  double of_gradient(std::int64_t k) const;
  // What the mean loss of micro-batch k is multiplied by; the sum is the mean over this worker's
  // labels.
  double of_loss(std::int64_t k) const;
  // Whether a label of this worker counts in this step.
  bool has_labels() const {
    return own_sum_ > 0;
  }

 private:
  struct Worker {
    std::unique_ptr<data::ExampleOrder> order = {};  // null: not needed so far, or of this worker
    std::int64_t epoch = -1;                         // that was asked for last
    std::vector<std::int64_t> counts = {};           // labels that count in each batch of it
  };
  std::int64_t labels_in(int worker, std::int64_t batch);

  const config::RunOptions& options_;
  const data::OrderSetting setting_;
  const data::ExampleOrder& own_order_;
  const at::Tensor counted_;  // Examples::counted_labels()
  std::vector<Worker> workers_;
  // The present step:
  std::vector<std::int64_t> own_;  // labels in each of this worker's micro-batches
  std::int64_t own_sum_ = 0;
  std::int64_t sum_ = 0;  // of the group
  int group_size_ = 1;
};

// Null if all micro-batches of all workers count alike. Arguments as above.
std::unique_ptr<BatchWeights> make_batch_weights(
    const config::RunOptions& options, const data::Examples& train, data::OrderSetting setting,
    const data::ExampleOrder& own);

}  // namespace abtrain::train
