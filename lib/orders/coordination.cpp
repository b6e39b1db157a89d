#include "orders/coordination.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/pair_signs.h"

namespace abtrain::orders {

Coordination::Coordination(
    const data::OrderOptions& options,
    std::int64_t numel,
    std::int64_t pairs,
    std::uint64_t seed,
    c10::Device device,
    comm::Communicator* group)
    : group_(group),
      workers_(group == nullptr ? 1 : group->size()),
      worker_(group == nullptr ? 0 : group->rank()),
      pairs_(pairs),
      numel_(numel) {
  data::OrderOptions wire = options;
  if (workers_ == 1) {
    wire.wire = "fp32";
  }
  wire_ = make_wire(wire, numel, seed);
  const DifferenceWire::Format& format = wire_->format();
  for (int w = 0; w < workers_; ++w) {
    counts_.push_back(
        pairs_ * format.elements * wire_->share(workers_, w).size());
  }
  const auto elements = at::TensorOptions(device).dtype(format.type);
  messages_ = at::empty({pairs_, wire_->elements()}, elements);
  if (workers_ > 1) {
    outbox_ = pairs_ == 1 ? messages_.view({-1})
                          : at::empty({messages_.numel()}, elements);
    inbox_ = at::empty(
        {workers_ * counts_[static_cast<std::size_t>(worker_)]}, elements);
  }
  sum_ = at::zeros(
      {wire_->share(workers_, worker_).size() * format.numbers},
      at::TensorOptions(device));
  signs_ = at::empty({pairs_ * workers_}, elements.dtype(at::kChar));
}

void Coordination::reset() {
  ABT_ASSERT(stage_ == Stage::Idle, "differences are under way");
  sum_.zero_();
}

void Coordination::encode(
    const at::Tensor& first,
    const at::Tensor& second,
    std::int64_t begin,
    std::int64_t count) {
  const at::NoGradGuard no_grad;
  ABT_ASSERT(
      pairs_ == 1 && stage_ != Stage::Differences, "the message is in use");
  const at::Tensor message = messages_.view({-1});
  const std::int64_t end = begin + count;
  if (count == numel_) {
    wire_->encode(first, second, message);
    return;
  }
  const auto subtract = [&](std::int64_t from, std::int64_t to) {
    if (from < to) {
      first.narrow(0, from, to - from).sub_(second.narrow(0, from, to - from));
    }
  };
  if (!wire_->takes_parts()) {
    subtract(begin, end);
    whole_ = true;
    return;
  }
  const DifferenceWire::Format& format = wire_->format();
  const std::int64_t n = format.numbers;
  const std::int64_t inner = std::min(end, (begin + n - 1) / n * n);
  const std::int64_t rest =
      std::max(inner, end == numel_ ? end : end / n * n);
  if (inner < rest) {
    const std::int64_t items = (rest - inner + n - 1) / n;
    wire_->encode(
        first.narrow(0, inner, rest - inner),
        second.narrow(0, inner, rest - inner),
        message.narrow(
            0, inner / n * format.elements, items * format.elements));
  }
  subtract(begin, inner);
  subtract(rest, end);
  if (begin < inner) {
    edges_.push_back(begin / n);
  }
  if (rest < end) {
    edges_.push_back(rest / n);
  }
}

void Coordination::send(const at::Tensor& first) {
  const at::NoGradGuard no_grad;
  finish();
  const at::Tensor message = messages_.view({-1});
  if (std::exchange(whole_, false)) {
    wire_->encode(first, {}, message);
  }
  const DifferenceWire::Format& format = wire_->format();
  std::ranges::sort(edges_);
  edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
  for (const std::int64_t item : edges_) {
    const std::int64_t begin = item * format.numbers;
    wire_->encode(
        first.narrow(0, begin, std::min(format.numbers, numel_ - begin)),
        {},
        message.narrow(0, item * format.elements, format.elements));
  }
  edges_.clear();
  exchange();
}

void Coordination::send_rows(const at::Tensor& differences) {
  const at::NoGradGuard no_grad;
  ABT_ASSERT(
      differences.size(0) == pairs_,
      differences.size(0),
      " pairs, expected ",
      pairs_);
  finish();
  for (std::int64_t k = 0; k < pairs_; ++k) {
    wire_->encode(differences[k], {}, messages_[k]);
  }
  exchange();
}

void Coordination::exchange() {
  if (workers_ == 1) {
    rows_ = wire_->rows(messages_.view({-1}), 1, pairs_);
    begin_products();
    finish();
    return;
  }
  if (pairs_ > 1) {
    const std::int64_t elements = wire_->format().elements;
    std::int64_t at = 0;
    for (int w = 0; w < workers_; ++w) {
      const DifferenceWire::Share share = wire_->share(workers_, w);
      const std::int64_t count = counts_[static_cast<std::size_t>(w)];
      outbox_.narrow(0, at, count)
          .view({pairs_, share.size() * elements})
          .copy_(messages_.narrow(
              1, share.begin * elements, share.size() * elements));
      at += count;
    }
  }
  pending_ =
      group_->all_to_all(inbox_, outbox_, counts_, comm::Purpose::Orders);
  stage_ = Stage::Differences;
}

void Coordination::receive() {
  pending_.wait();
  rows_ = wire_->rows(inbox_, workers_, pairs_);
  begin_products();
}

void Coordination::begin_products() {
  row_ = 0;
  stage_ = Stage::Products;
  start_run();
}

// Of rows row_, row_ + 1, ...: <S, D_j>, and <D_j, D_i> before.
void Coordination::start_run() {
  triangle_ = rows_->products(
      row_, std::min(kProductRows, rows_->size() - row_), sum_);
  if (workers_ > 1) {
    pending_ = group_->all_reduce(
        triangle_, comm::ReduceOp::Sum, comm::Purpose::Orders);
  }
}

void Coordination::end_products() {
  for (;;) {
    pending_.wait();
    const std::int64_t count = std::min(kProductRows, rows_->size() - row_);
    const at::Tensor signs = signs_.narrow(0, row_, count);
    ops::pair_signs(triangle_, signs);
    rows_->add(row_, signs, sum_);
    row_ += count;
    if (row_ == rows_->size()) {
      break;
    }
    start_run();
  }
  stage_ = Stage::Idle;
  decided_.push(signs_);
}

void Coordination::advance() {
  const at::NoGradGuard no_grad;
  if (stage_ == Stage::Differences) {
    receive();
  } else if (stage_ == Stage::Products) {
    end_products();
  }
}

void Coordination::finish() {
  while (stage_ != Stage::Idle) {
    advance();
  }
}

}  // namespace abtrain::orders
