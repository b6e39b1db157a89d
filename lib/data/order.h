// Which examples a worker takes in an epoch, and in what order.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "base/random.h"

namespace abtrain::data {

class PublishedOrder;

class ExampleOrder {
 public:
  virtual ~ExampleOrder() = default;
  // Returns examples_per_epoch() indices of training examples. In every epoch the workers' shares
  // are disjoint and proportional to their batch sizes; fewer examples than a step takes are left
  // over.
  virtual std::vector<std::int64_t> epoch(std::int64_t epoch) const = 0;
  // Like epoch(), but waits until the order is known; for a separate thread. Returns an empty order
  // if a stop is requested first.
  virtual std::vector<std::int64_t> wait_for(
      std::int64_t epoch, const std::stop_token& /*stop*/) const {
    return this->epoch(epoch);
  }
  virtual std::int64_t examples_per_epoch() const = 0;
};

// How the training examples are divided among workers, and for which worker.
struct OrderSetting {
  std::int64_t examples = 0;  // of all workers together
  int worker = 0;
  int workers = 1;
  std::uint64_t seed = 0;
  // The batch size of each worker; empty if all are equal.
  std::vector<std::int64_t> batches = {};
  // For data.shards: by-class, the examples in an order in which neighbors belong together
  // (by_class() in dataset.h); each worker gets a contiguous part. Empty: each gets a share of all
  // examples.
  std::vector<std::int64_t> together = {};
};

// `order.name: shuffle`: one seeded permutation of all examples per epoch, the same on every
// worker; worker w takes positions w, w + workers, ... With unequal batches, a worker's turns are
// proportional to its batch size and spread evenly, so that a step takes the same positions however
// it is divided. With `together`, each worker permutes its own part, which is as large as its share
// of all would be.
std::unique_ptr<ExampleOrder> make_shuffle(const OrderSetting& setting);
// `order.name: sequential`: no permutation; each epoch continues where the previous one ended.
std::unique_ptr<ExampleOrder> make_sequential(const OrderSetting& setting);

// Returns an order that a method derives from gradients. The worker keeps its examples of shuffle's
// first epoch, cut to whole steps of `step` examples, and orders units of `unit` examples. The
// caller publishes each epoch's order to the result.
std::unique_ptr<PublishedOrder> make_published_order(
    const OrderSetting& setting, std::int64_t unit, std::int64_t step);

// Number of full batches of `batch_size` per epoch; a remainder is dropped.
// Throws Config if there is none.
std::int64_t full_batches(const ExampleOrder& order, std::int64_t batch_size);

// 0 .. count-1 (count below 2^32), shuffled by the Fisher-Yates method.
std::vector<std::int64_t> permutation(std::int64_t count, Random random);

}  // namespace abtrain::data
