#include "orders/balancer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <numeric>
#include <utility>

#include "base/error.h"
#include "ops/pair_signs.h"

namespace abtrain::orders {

double order_copies(const OrderOptions& options, std::int64_t batch, int workers) {
  const OrderKind& kind = kind_of(options);
  if (!kind.is_balanced()) {
    return 0;
  }
  const bool examples = batch > 0;
  if (!kind.decides_together || workers == 1) {
    // S and, without pairs, mean_ and total_. Without `examples`, also the difference being
    // balanced and, with pairs, the first gradient of the pair.
    return kind.decides_pairs ? (examples ? 1 : 3) : (examples ? 3 : 4);
  }
  const double message = options.wire == OrderWire::Fp32   ? 1
                         : options.wire == OrderWire::Int8 ? 0.25
                                                           : 0;
  const auto pairs = static_cast<double>(examples ? batch / 2 : 1);
  // A third message holds the pair's first gradient or, with `examples`, the differences grouped by
  // receiving worker.
  const bool has_third = examples || options.wire == OrderWire::Int8;
  const double messages = (has_third ? 3 : 2) * pairs;
  // Each pair's gradient or difference, the messages sent and received, and a share of S.
  return pairs + messages * message + 1.0 / workers;
}

Balancer::Balancer(const OrderOptions& options, std::int64_t batch, data::PublishedOrder& order)
    : options_(options), kind_(kind_of(options)), batch_(batch), published_(order) {}

void Balancer::start(std::int64_t epoch, std::int64_t place) {
  std::vector<std::int64_t> units(static_cast<std::size_t>(published_.units()));
  std::iota(units.begin(), units.end(), 0);
  order_ = data::BalancedOrder(std::move(units));
  epoch_ = epoch;
  place_ = place;
  broken_ = kind_.decides_pairs && place % 2 == 1;
  for (std::int64_t k = 0; k < place; ++k) {
    if (!kind_.decides_pairs) {
      order_.decide_unit(1);
    } else if (k % 2 == 1) {
      order_.decide_pair(1);
    }
  }
  published_.publish(epoch, order_.order());
}

void Balancer::bind(std::int64_t numel, c10::Device device, comm::Communicator* group) {
  const at::NoGradGuard no_grad;
  settle();
  broken_ = kind_.decides_pairs && place_ % 2 == 1;
  seen_ = 0;
  numel_ = numel;
  group_ = kind_.decides_together ? group : nullptr;
  const at::TensorOptions on(device);
  coordination_.reset();
  if (takes_examples() && is_alone()) {
    sum_ = at::zeros({numel}, on);
  } else {
    coordination_.emplace(
        options_, numel, takes_examples() ? batch_ / 2 : 1, device, group_, signs_);
    sum_ = coordination_->sum();
  }
  if (!kind_.decides_pairs) {
    mean_ = at::zeros({numel}, on);
    total_ = at::zeros({numel}, on);
    counted_ = 0;
  }
}

void Balancer::see(const at::Tensor& gradients, std::int64_t begin, std::int64_t count) {
  const at::NoGradGuard no_grad;
  seen_ += count;
  if (!kind_.decides_pairs) {
    total_.narrow(0, begin, count).add_(gradients.narrow(0, begin, count));
    coordination_->center(gradients, mean_, begin, count);
  } else if (place_ % 2 == 0) {
    coordination_->keep(gradients, begin, count);
  } else if (!broken_) {
    coordination_->subtract(gradients, begin, count);
  }
}

void Balancer::step(const at::Tensor& gradients) {
  const at::NoGradGuard no_grad;
  if (seen_ == 0) {
    see(gradients, 0, numel_);
  }
  ABT_ASSERT(seen_ == numel_, "{} of {} numbers of a gradient were seen", seen_, numel_);
  seen_ = 0;
  coordination_->advance();
  take_signs(false);
  if (!kind_.decides_pairs) {
    ++counted_;
    coordination_->send();
  } else if (place_ % 2 == 1) {
    if (std::exchange(broken_, false)) {
      order_.decide_pair(1);
    } else {
      coordination_->send();
    }
  }
  advance(1);
}

void Balancer::step(const nn::UnitGradients& units) {
  const at::NoGradGuard no_grad;
  ABT_ASSERT(units.size() == batch_, "{} units, not {}", units.size(), batch_);
  if (is_alone()) {
    balance_alone(units);
  } else {
    coordination_->finish();
    const at::Tensor rows = at::empty({batch_ / 2, numel_}, sum_.options());
    units.differences(rows);
    coordination_->send_rows(rows);
  }
  take_signs(false);
  advance(batch_);
}

void Balancer::balance_alone(const nn::UnitGradients& units) {
  at::Tensor all = units.products();
  at::Tensor with_sum = units.products(sum_);
  const std::int64_t n = kind_.decides_pairs ? batch_ / 2 : batch_;
  if (kind_.decides_pairs) {
    // <g_2k - g_2k+1, g_2l - g_2l+1>
    const at::Tensor rows = all.reshape({n, 2, 2 * n});
    const at::Tensor first = (rows.select(1, 0) - rows.select(1, 1)).view({n, n, 2});
    all = first.select(2, 0) - first.select(2, 1);
    const at::Tensor pairs = with_sum.view({n, 2});
    with_sum = pairs.select(1, 0) - pairs.select(1, 1);
  } else {
    // <g_i - mean, g_j - mean>
    const at::Tensor with_mean = units.products(mean_);
    all = all - with_mean.unsqueeze(0) - with_mean.unsqueeze(1) + at::dot(mean_, mean_);
    with_sum = with_sum - at::dot(sum_, mean_);
  }
  const at::Tensor signs = at::empty({n}, all.options().dtype(at::kChar));
  ops::pair_signs(packer_.pack(all, with_sum), signs);
  const at::Tensor factors = signs.to(at::kFloat);
  if (kind_.decides_pairs) {
    units.add(sum_, at::stack({factors, -factors}, 1).view({-1}));
  } else {
    units.add(sum_, factors);
    sum_.addcmul_(mean_, factors.sum(), -1);
    units.add(total_, at::ones({n}, factors.options()));
    counted_ += n;
  }
  signs_.push(signs);
}

void Balancer::take_signs(bool wait) {
  const int workers = is_alone() ? 1 : group_->size();
  const int own = is_alone() ? 0 : group_->rank();
  signs_.take(wait, [&](const std::vector<int>& signs) {
    if (watch_signs) {
      watch_signs(signs);
    }
    for (auto k = static_cast<std::size_t>(own); k < signs.size();
         k += static_cast<std::size_t>(workers)) {
      kind_.decides_pairs ? order_.decide_pair(signs[k]) : order_.decide_unit(signs[k]);
    }
  });
}

void Balancer::advance(std::int64_t units) {
  place_ += units;
  if (place_ != published_.units()) {
    return;
  }
  settle();
  order_.end_epoch();
  sum_.zero_();
  if (!kind_.decides_pairs) {
    mean_.copy_(total_ / static_cast<double>(counted_));
    total_.zero_();
    counted_ = 0;
  }
  place_ = 0;
  published_.publish(++epoch_, order_.order());
}

void Balancer::settle() {
  const at::NoGradGuard no_grad;
  if (coordination_) {
    coordination_->finish();
  }
  take_signs(true);
}

void Balancer::archive(state::Archive& archive) {
  std::vector<std::int64_t> units = order_.save();
  archive.value("order.epoch", epoch_);
  archive.value("order.place", place_);
  archive.value("order.broken", broken_);
  archive.value("order.units", units);
  archive.value("order.counted", counted_);
  archive.tensor("order.sum", sum_, state::Owner::Worker);
  if (place_ % 2 == 1 && kind_.decides_pairs) {
    ABT_CHECK(
        coordination_.has_value(), DamagedData,
        "the checkpoint's place in the order of examples is inside a pair");
    coordination_->archive(archive, "order.");
  }
  archive.tensor("order.mean", mean_, state::Owner::Worker);
  archive.tensor("order.total", total_, state::Owner::Worker);
  if (!archive.is_loading()) {
    return;
  }
  order_ =
      data::BalancedOrder(std::vector<std::int64_t>(static_cast<std::size_t>(published_.units())));
  ABT_CHECK(
      epoch_ >= 0 && place_ >= 0 && place_ < published_.units() && order_.restore(units) &&
          units[0] <= place_ && units[0] >= place_ - 1,
      DamagedData,
      "the checkpoint's order of examples is not one of {} units, of which {} "
      "are done",
      published_.units(), place_);
  published_.publish(epoch_, order_.order());
}

}  // namespace abtrain::orders
