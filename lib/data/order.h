// Which examples a worker takes in an epoch, and in which order.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "base/random.h"
#include "data/data_options.h"

namespace abtrain::data {

class PublishedOrder;

class ExampleOrder {
 public:
  virtual ~ExampleOrder() = default;
  // Indices into the training images, examples_per_epoch() of them; every
  // epoch the workers' shares are disjoint and of one size (the up to
  // workers-1 left-over examples differ from epoch to epoch).
  virtual std::vector<std::int64_t> epoch(std::int64_t epoch) const = 0;
  // The same, from a thread of its own, as soon as it is known; empty where it
  // is no longer wanted by then.
  virtual std::vector<std::int64_t>
  wait_for(std::int64_t epoch, const std::stop_token& /*stop*/) const {
    return this->epoch(epoch);
  }
  virtual std::int64_t examples_per_epoch() const = 0;
};

// One worker of several, who share the training images out.
struct OrderSetting {
  std::int64_t examples = 0;  // of all
  int worker = 0;
  int workers = 1;
  std::uint64_t seed = 0;
};

// shuffle: one seeded permutation of all examples an epoch, the same on every
// worker; worker w takes positions w, w + workers, ... sequential: no
// permutation; an epoch goes on where the one before stopped. Throws Config for
// another name.
std::unique_ptr<ExampleOrder> make_order(
    const OrderOptions& options, const OrderSetting& setting);

// Where gradients decide on the order (is_balanced()): the worker keeps the
// examples of shuffle's first epoch, as many whole units of `unit` as a step
// count of `step` examples each allows. Publish epochs to it.
std::unique_ptr<PublishedOrder> make_published_order(
    const OrderSetting& setting, std::int64_t unit, std::int64_t step);

// Batches of `batch_size` that an epoch fills; a rest is dropped. Throws Config
// where it fills none.
std::int64_t full_batches(const ExampleOrder& order, std::int64_t batch_size);

// 0 .. count-1 (count below 2^32), shuffled by Fisher and Yates' method.
std::vector<std::int64_t> permutation(std::int64_t count, Random random);

}  // namespace abtrain::data
