// An order that becomes known during training: one thread publishes each
// epoch's order, and loaders wait for it.
#pragma once

#include <condition_variable>
#include <mutex>

#include "data/order.h"

namespace abtrain::data {

// Orders units of a fixed number of examples each. The examples of each unit never change.
class PublishedOrder : public ExampleOrder {
 public:
  // `examples`: the examples of unit 0, of unit 1, ..., `unit` examples each.
  PublishedOrder(std::vector<std::int64_t> examples, std::int64_t unit);

  std::int64_t units() const {
    return examples_per_epoch() / unit_;
  }
  // `units`: the order of the epoch's units, a permutation. Epochs must ascend.
  void publish(std::int64_t epoch, const std::vector<std::int64_t>& units);

  // The order of the epoch published last. Throws std::logic_error for another epoch.
  std::vector<std::int64_t> epoch(std::int64_t epoch) const override;
  std::vector<std::int64_t> wait_for(
      std::int64_t epoch, const std::stop_token& stop) const override;
  std::int64_t examples_per_epoch() const override {
    return static_cast<std::int64_t>(examples_.size());
  }

 private:
  const std::vector<std::int64_t> examples_;
  const std::int64_t unit_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any published_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;  // the examples of epoch_, in order
};

}  // namespace abtrain::data
