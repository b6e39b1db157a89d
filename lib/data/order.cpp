#include "data/order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"
#include "data/published_order.h"

namespace abtrain::data {
namespace {

class SharedOrder : public ExampleOrder {
 public:
  // Returns the example at each position of an epoch.
  using All = std::function<std::vector<std::int64_t>(std::int64_t epoch)>;
  // `positions`: this worker's positions in `all`.
  SharedOrder(std::vector<std::int64_t> positions, All all)
      : positions_(std::move(positions)), all_(std::move(all)) {}

  std::int64_t examples_per_epoch() const override {
    return std::ssize(positions_);
  }
  std::vector<std::int64_t> epoch(std::int64_t epoch) const override {
    const std::vector<std::int64_t> all = all_(epoch);
    std::vector<std::int64_t> mine;
    mine.reserve(positions_.size());
    for (const std::int64_t position : positions_) {
      mine.push_back(all[static_cast<std::size_t>(position)]);
    }
    return mine;
  }

 private:
  const std::vector<std::int64_t> positions_;
  const All all_;
};

// A worker's positions among all examples of an epoch. The workers take turns in cycles, and a
// worker has the same places in each cycle. With equal batches, each worker has one turn per cycle.
std::vector<std::int64_t> positions_of(const OrderSetting& setting) {
  ABT_ASSERT(
      setting.workers >= 1 && setting.worker >= 0 && setting.worker < setting.workers &&
          setting.examples >= 0 &&
          (setting.batches.empty() || std::ssize(setting.batches) == setting.workers),
      "worker {} of {}, {} examples", setting.worker, setting.workers, setting.examples);
  std::vector<std::int64_t> turns = setting.batches;
  turns.resize(static_cast<std::size_t>(setting.workers), 1);
  std::int64_t divisor = 0;
  for (const std::int64_t count : turns) {
    ABT_ASSERT(count >= 1, "a batch of {}", count);
    divisor = std::gcd(divisor, count);
  }
  std::int64_t cycle = 0;
  for (std::int64_t& count : turns) {
    count /= divisor;
    cycle += count;
  }
  // Turn k (from 0) of a worker with t turns lies at (2 k + 1) / (2 t) of the cycle; at equal
  // points, lower workers come first. Its place is the number of turns before it. For worker v with
  // t_v turns, these are the turns j with (2 j + 1) / t_v < (2 k + 1) / t or, if v is a lower
  // worker, <=.
  const auto own = static_cast<std::size_t>(setting.worker);
  std::vector<std::int64_t> places;  // within a cycle, ascending
  for (std::int64_t k = 0; k < turns[own]; ++k) {
    std::int64_t place = 0;
    for (std::size_t v = 0; v < turns.size(); ++v) {
      const std::int64_t point = (2 * k + 1) * turns[v] - (v < own ? 0 : 1);
      place += (point / turns[own] + 1) / 2;
    }
    places.push_back(place);
  }
  std::vector<std::int64_t> positions;
  for (std::int64_t begin = 0; begin + cycle <= setting.examples; begin += cycle) {
    for (const std::int64_t place : places) {
      positions.push_back(begin + place);
    }
  }
  return positions;
}

// A worker's contiguous part of OrderSetting::together, shuffled in each epoch.
class OwnPart : public ExampleOrder {
 public:
  explicit OwnPart(const OrderSetting& setting)
      : seed_(setting.seed), worker_(static_cast<std::uint32_t>(setting.worker)) {
    OrderSetting lower = setting;
    std::int64_t begin = 0;
    for (lower.worker = 0; lower.worker < setting.worker; ++lower.worker) {
      begin += std::ssize(positions_of(lower));
    }
    const auto first = setting.together.begin() + begin;
    part_ = {first, first + std::ssize(positions_of(setting))};
  }

  std::int64_t examples_per_epoch() const override {
    return std::ssize(part_);
  }
  std::vector<std::int64_t> epoch(std::int64_t epoch) const override {
    const auto order = permutation(
        std::ssize(part_),
        Random(seed_, RandomPurpose::Shuffle, static_cast<std::uint32_t>(epoch), worker_ + 1));
    return mapped(order, [&](std::int64_t i) { return part_[static_cast<std::size_t>(i)]; });
  }

 private:
  const std::uint64_t seed_;
  const std::uint32_t worker_;
  std::vector<std::int64_t> part_;
};

}  // namespace

std::int64_t full_batches(const ExampleOrder& order, std::int64_t batch_size) {
  const std::int64_t batches = order.examples_per_epoch() / batch_size;
  ABT_CHECK(
      batches >= 1, Config,
      "data.batch_size: expected at most the {} examples that a worker has per "
      "epoch, got {}",
      with_commas(order.examples_per_epoch()), with_commas(batch_size));
  return batches;
}

std::vector<std::int64_t> permutation(std::int64_t count, Random random) {
  ABT_ASSERT(count >= 0 && count < (std::int64_t{1} << 32), "{}", count);
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = count - 1; i > 0; --i) {
    std::swap(order[i], order[random.below(static_cast<std::uint32_t>(i + 1))]);
  }
  return order;
}

std::unique_ptr<ExampleOrder> make_shuffle(const OrderSetting& setting) {
  if (!setting.together.empty()) {
    return std::make_unique<OwnPart>(setting);
  }
  return std::make_unique<SharedOrder>(
      positions_of(setting), [count = setting.examples, seed = setting.seed](std::int64_t epoch) {
        return permutation(
            count, Random(seed, RandomPurpose::Shuffle, static_cast<std::uint32_t>(epoch)));
      });
}

std::unique_ptr<ExampleOrder> make_sequential(const OrderSetting& setting) {
  return std::make_unique<SharedOrder>(
      positions_of(setting),
      [count = setting.examples, workers = setting.workers](std::int64_t epoch) {
        // Begins where the previous epoch would have ended with equal batches, so that each
        // left-over example gets its turn.
        const std::int64_t first = epoch * (count / workers * workers);
        std::vector<std::int64_t> all(static_cast<std::size_t>(count));
        std::iota(all.begin(), all.end(), 0);
        std::ranges::rotate(all, all.begin() + first % std::max<std::int64_t>(1, count));
        return all;
      });
}

std::unique_ptr<PublishedOrder> make_published_order(
    const OrderSetting& setting, std::int64_t unit, std::int64_t step) {
  ABT_ASSERT(unit >= 1 && step % unit == 0, "units of {}, steps of {}", unit, step);
  std::vector<std::int64_t> examples = make_shuffle(setting)->epoch(0);
  examples.resize(
      examples.size() / static_cast<std::size_t>(step) * static_cast<std::size_t>(step));
  return std::make_unique<PublishedOrder>(std::move(examples), unit);
}

}  // namespace abtrain::data
