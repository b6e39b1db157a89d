// An order that fails in one epoch, for tests of loaders.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "data/order.h"

namespace abtrain::data {

// All examples are the same one; fails in one epoch; counts its calls.
class FailingOrder : public ExampleOrder {
 public:
  FailingOrder(std::int64_t examples, std::int64_t fails_in, std::int64_t example = 1)
      : examples_(examples), fails_in_(fails_in), example_(example) {}
  std::vector<std::int64_t> epoch(std::int64_t epoch) const override {
    ++calls;
    ABT_CHECK(epoch != fails_in_, DamagedData, "the order is broken");
    return std::vector<std::int64_t>(static_cast<std::size_t>(examples_), example_);
  }
  std::int64_t examples_per_epoch() const override {
    return examples_;
  }
  mutable std::atomic<int> calls = 0;

 private:
  std::int64_t examples_;
  std::int64_t fails_in_;
  std::int64_t example_;
};

}  // namespace abtrain::data
