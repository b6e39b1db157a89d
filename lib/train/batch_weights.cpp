#include "train/batch_weights.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "orders/order_kind.h"

namespace abtrain::train {

BatchWeights::BatchWeights(
    const config::RunOptions& options, const data::Examples& train, data::OrderSetting setting,
    const data::ExampleOrder& own)
    : options_(options),
      setting_(std::move(setting)),
      own_order_(own),
      counted_(train.counted_labels()),
      workers_(static_cast<std::size_t>(setting_.workers)) {}

void BatchWeights::begin(std::int64_t t, const comm::Communicator* group) {
  group_size_ = group != nullptr ? group->size() : 1;
  const int first = group != nullptr ? setting_.worker - group->rank() : setting_.worker;
  const std::int64_t count = options_.train.accumulate;
  own_.assign(static_cast<std::size_t>(count), 0);
  sum_ = 0;
  for (int worker = first; worker < first + group_size_; ++worker) {
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t labels = labels_in(worker, t * count + k);
      sum_ += labels;
      if (worker == setting_.worker) {
        own_[static_cast<std::size_t>(k)] = labels;
      }
    }
  }
  own_sum_ = std::accumulate(own_.begin(), own_.end(), std::int64_t{0});
}

double BatchWeights::of_gradient(std::int64_t k) const {
  const std::int64_t shares = group_size_ * options_.train.accumulate;
  return static_cast<double>(own_[static_cast<std::size_t>(k)] * shares) /
         static_cast<double>(std::max<std::int64_t>(1, sum_));
}

double BatchWeights::of_loss(std::int64_t k) const {
  return static_cast<double>(own_[static_cast<std::size_t>(k)]) /
         static_cast<double>(std::max<std::int64_t>(1, own_sum_));
}

std::int64_t BatchWeights::labels_in(int worker, std::int64_t batch) {
  const std::int64_t size = setting_.batches[static_cast<std::size_t>(worker)];
  if (!counted_.defined()) {
    return size;
  }
  Worker& of = workers_[static_cast<std::size_t>(worker)];
  const bool is_own = worker == setting_.worker;
  if (!is_own && of.order == nullptr) {
    const orders::OrderKind& kind = orders::kind_of(options_.order);
    ABT_ASSERT(!kind.is_balanced(), "the order of worker {} is not known", worker);
    data::OrderSetting setting = setting_;
    setting.worker = worker;
    of.order = kind.make(setting);
  }
  const data::ExampleOrder& order = is_own ? own_order_ : *of.order;
  const std::int64_t batches = data::full_batches(order, size);
  if (of.epoch != batch / batches) {
    of.epoch = batch / batches;
    const std::vector<std::int64_t> examples = order.epoch(of.epoch);
    const auto* counted = counted_.const_data_ptr<std::int64_t>();
    of.counts.assign(static_cast<std::size_t>(batches), 0);
    for (std::size_t i = 0; i < of.counts.size() * static_cast<std::size_t>(size); ++i) {
      of.counts[i / static_cast<std::size_t>(size)] += counted[examples[i]];
    }
  }
  return of.counts[static_cast<std::size_t>(batch % batches)];
}

std::unique_ptr<BatchWeights> make_batch_weights(
    const config::RunOptions& options, const data::Examples& train, data::OrderSetting setting,
    const data::ExampleOrder& own) {
  const bool alike = !options.balance.is_on() && !train.counted_labels().defined();
  return alike ? nullptr : std::make_unique<BatchWeights>(options, train, std::move(setting), own);
}

}  // namespace abtrain::train
