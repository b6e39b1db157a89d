#include "compress/gradient_exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "compress/schemes.h"

namespace abtrain::compress {

GradientExchange::GradientExchange(
    const ReducerOptions& options, std::uint64_t seed, std::int64_t interval)
    : options_(options), seed_(seed), interval_(interval) {}

void GradientExchange::bind(
    std::vector<Slot> slots, at::Tensor gradients, comm::Communicator& group,
    comm::Purpose purpose) {
  ABT_ASSERT(step_ < 0, "an exchange is under way");
  gradients_ = std::move(gradients);
  group_ = &group;
  purpose_ = purpose;
  buckets_ = make_buckets(slots, options_.bucket_mb);
  std::unordered_map<std::string, std::size_t> bucket_of;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    for (const Slot& slot : buckets_[b].slots) {
      bucket_of.emplace(slot.name, b);
    }
  }
  bucket_of_.clear();
  for (const Slot& slot : slots) {
    const auto found = bucket_of.find(slot.name);
    bucket_of_.push_back(found == bucket_of.end() ? buckets_.size() : found->second);
  }
  reducer_ = make_reducer(options_, seed_);
  reducer_->bind(buckets_);
}

void GradientExchange::release() {
  ABT_ASSERT(step_ < 0, "an exchange is under way");
  gradients_.reset();
  reducer_.reset();
}

bool GradientExchange::is_evaluated(std::int64_t t) const {
  // True for the first exchange at or after each multiple of evaluate_every.
  return options_.evaluate_every > 0 && t % options_.evaluate_every < interval_ &&
         group_->size() > 1;
}

bool GradientExchange::is_dense(std::int64_t t) const {
  return t < options_.dense_steps;
}

void GradientExchange::begin(std::int64_t t) {
  ABT_ASSERT(step_ < 0, "step {} is not finished", step_ + 1);
  if (!is_evaluated(t)) {
    open_step(t);
  }
}

void GradientExchange::open_step(std::int64_t t) {
  step_ = t;
  missing_.clear();
  for (const Bucket& bucket : buckets_) {
    missing_.push_back(bucket.slots.size());
  }
  open_.clear();
}

void GradientExchange::ready(std::size_t index) {
  if (step_ < 0 || bucket_of_[index] == buckets_.size()) {
    return;
  }
  std::size_t& missing = missing_[bucket_of_[index]];
  ABT_ASSERT(missing > 0, "a gradient was ready twice in a step");
  --missing;
  while (!all_started() && missing_[open_.size()] == 0) {
    start_bucket();
  }
}

void GradientExchange::start(std::int64_t t) {
  begin(t);
  while (step_ >= 0 && !all_started()) {  // evaluated steps start in finish()
    open_bucket();                        // does not wait for a collective
  }
}

void GradientExchange::open_bucket() {
  const at::NoGradGuard no_grad;
  const std::size_t next = open_.size();
  if (watch_) {
    for (const Range& range : buckets_[next].ranges) {
      watch_(gradients_, range.begin, range.size);
    }
  }
  open_.emplace_back(
      Open{reducer_->reduce({next, gradients_, group_, purpose_, step_, is_dense(step_)}), {}});
  advance(open_.back());
}

void GradientExchange::start_bucket() {
  const at::NoGradGuard no_grad;
  // The new bucket first: then its collective is in flight while this waits for the others.
  open_bucket();
  for (std::size_t b = 0; b + 1 < open_.size(); ++b) {
    advance(open_[b]);
  }
}

void GradientExchange::advance(std::optional<Open>& open) {
  if (!open) {
    return;
  }
  const c10::Device device = gradients_.device();
  if (open->last) {
    count(&Costs::encode, *std::exchange(open->last, {}));
  }
  device::Span waiting(device);
  open->rounds.wait();
  waiting.end();
  count(&Costs::collective, std::move(waiting));
  device::Span working(device);
  const bool more = open->rounds.resume();
  working.end();
  if (more) {
    open->last = std::move(working);
  } else {
    count(&Costs::decode, std::move(working));
    open.reset();
  }
}

std::optional<Evaluation> GradientExchange::finish(std::int64_t t) {
  const at::NoGradGuard no_grad;
  at::Tensor exact;
  Costs before;
  if (is_evaluated(t)) {
    before = costs();
    exact = gradients_.clone();
    group_->all_reduce(exact, comm::ReduceOp::Mean, comm::Purpose::Metrics).wait();
  }
  if (step_ < 0) {
    open_step(t);
  }
  ABT_ASSERT(step_ == t, "step {} is finished, but {} was begun", t, step_);
  while (!all_started()) {
    start_bucket();
  }
  const auto is_open = [](const std::optional<Open>& open) { return open.has_value(); };
  while (std::ranges::any_of(open_, is_open)) {
    for (std::optional<Open>& open : open_) {
      advance(open);
    }
  }
  open_.clear();
  step_ = -1;
  return exact.defined() ? std::optional(evaluate(exact, before, is_dense(t))) : std::nullopt;
}

Evaluation GradientExchange::evaluate(const at::Tensor& exact, const Costs& before, bool dense) {
  const Costs of_step = costs() - before;
  // In fp64: BLAS libraries may add up hundreds of thousands of fp32 squares one by one.
  const auto norm_of = [](const at::Tensor& flat) {
    return at::linalg_vector_norm(flat, 2, {}, false, at::kDouble).item<double>();
  };
  const double norm = norm_of(exact);
  exact.sub_(gradients_);
  at::Tensor squares = at::zeros({1}, gradients_.options());
  for (const at::Tensor& square : reducer_->residual_squares()) {
    squares.add_(square);
  }
  group_->all_reduce(squares, comm::ReduceOp::Mean, comm::Purpose::Metrics).wait();
  const Volume volume = reducer_->volume({group_->size(), group_->rank()}, dense);
  const auto numel = static_cast<double>(gradients_.numel());
  return {
      .vnmse = norm > 0 ? std::pow(norm_of(exact) / norm, 2) : 0,
      .residual_norm = std::sqrt(squares.item<double>()),
      .payload_bits = static_cast<double>(volume.payload_bits) / numel,
      .sent_bits = 8.0 * static_cast<double>(volume.bytes) / numel,
      .costs = of_step};
}

void GradientExchange::count(double Costs::*stage, device::Span span) {
  spans_.emplace_back(stage, std::move(span));
  settle(false);
}

void GradientExchange::settle(bool wait) {
  while (!spans_.empty()) {
    const auto& [stage, span] = spans_.front();
    const auto seconds = span.seconds(wait);
    if (!seconds) {
      return;
    }
    costs_.*stage += *seconds;
    spans_.pop_front();
  }
}

const Costs& GradientExchange::costs() {
  settle(true);
  return costs_;
}

void GradientExchange::archive(state::Archive& archive, const std::string& prefix) {
  reducer_->archive(archive, prefix);
}

ExchangePlan::ExchangePlan(const ReducerOptions& options, std::vector<Slot> slots, Member member)
    : dense_steps_(options.dense_steps) {
  const std::unique_ptr<Reducer> reducer = make_reducer(options, 0);
  reducer->bind(make_buckets(std::move(slots), options.bucket_mb));
  dense_ = reducer->volume(member, /*dense=*/true).bytes;
  usual_ = reducer->volume(member, /*dense=*/false).bytes;
}

std::int64_t ExchangePlan::bytes_between(
    std::int64_t first, std::int64_t end, std::int64_t interval) const {
  const auto count = [&](std::int64_t before) {
    return before <= first ? 0 : (before - first + interval - 1) / interval;
  };
  const std::int64_t dense = count(std::min(end, dense_steps_));
  return dense * dense_ + (count(end) - dense) * usual_;
}

}  // namespace abtrain::compress
