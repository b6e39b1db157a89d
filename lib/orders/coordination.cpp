#include "orders/coordination.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/difference_codes.h"
#include "ops/pair_signs.h"

namespace abtrain::orders {

namespace {

// Selects fp32 for a worker alone, because it sends nothing.
OrderOptions wire_of(OrderOptions options, int workers) {
  options.wire = workers == 1 ? OrderWire::Fp32 : options.wire;
  return options;
}

}  // namespace

Coordination::Coordination(
    const OrderOptions& options, std::int64_t numel, std::int64_t pairs, c10::Device device,
    comm::Communicator* group, SignQueue& signs)
    : group_(group),
      workers_(group == nullptr ? 1 : group->size()),
      worker_(group == nullptr ? 0 : group->rank()),
      pairs_(pairs),
      wire_(wire_of(options, workers_), numel),
      numel_(numel),
      decided_(signs) {
  const DifferenceWire::Format& format = wire_.format();
  for (int w = 0; w < workers_; ++w) {
    counts_.push_back(pairs_ * format.elements * wire_.share(workers_, w).size());
  }
  const auto elements = at::TensorOptions(device).dtype(format.type);
  messages_ = at::empty({pairs_, wire_.elements()}, elements);
  if (pairs_ == 1 && wire_.format().keeps_messages) {
    kept_ = at::zeros({wire_.elements()}, elements);
  }
  outbox_ = pairs_ == 1 || workers_ == 1 ? messages_.view({-1})
                                         : at::empty({messages_.numel()}, elements);
  inbox_ = workers_ == 1
               ? outbox_
               : at::empty({workers_ * counts_[static_cast<std::size_t>(worker_)]}, elements);
  sum_ = at::zeros(
      {wire_.share(workers_, worker_).size() * format.numbers}, at::TensorOptions(device));
  signs_ = at::empty({pairs_ * workers_}, elements.dtype(at::kChar));
}

Coordination::Cut Coordination::cut(std::int64_t begin, std::int64_t count) const {
  const std::int64_t n = wire_.format().numbers;
  const std::int64_t end = begin + count;
  const std::int64_t inner = std::min(end, (begin + n - 1) / n * n);
  return {begin, inner, std::max(inner, end == numel_ ? end : end / n * n), end};
}

at::Tensor Coordination::items(const at::Tensor& message, const Cut& cut) const {
  const DifferenceWire::Format& format = wire_.format();
  const std::int64_t count = (cut.rest - cut.inner + format.numbers - 1) / format.numbers;
  return message.narrow(0, cut.inner / format.numbers * format.elements, count * format.elements);
}

void Coordination::keep(const at::Tensor& gradient, std::int64_t begin, std::int64_t count) {
  if (!first_.defined()) {
    first_ = at::zeros({numel_}, gradient.options());
  }
  const auto copy = [&](std::int64_t from, std::int64_t to) {
    if (from < to) {
      first_.narrow(0, from, to - from).copy_(gradient.narrow(0, from, to - from));
    }
  };
  if (!wire_.format().keeps_messages) {
    copy(begin, begin + count);
    return;
  }
  const Cut c = cut(begin, count);
  if (c.inner < c.rest) {
    wire_.encode(gradient.narrow(0, c.inner, c.rest - c.inner), {}, items(kept_, c));
  }
  copy(c.begin, c.inner);
  copy(c.rest, c.end);
}

void Coordination::subtract(const at::Tensor& gradient, std::int64_t begin, std::int64_t count) {
  ABT_ASSERT(pairs_ == 1 && stage_ != Stage::Differences, "the message is in use");
  const at::Tensor message = messages_.view({-1});
  const auto part = [&](const at::Tensor& of, std::int64_t from, std::int64_t to) {
    return of.narrow(0, from, to - from);
  };
  const Cut c = cut(begin, count);
  if (c.inner < c.rest) {
    const at::Tensor second = part(gradient, c.inner, c.rest);
    if (wire_.format().keeps_messages) {
      ops::encode_difference_of_kept(items(kept_, c), second, items(message, c));
    } else {
      wire_.encode(part(first_, c.inner, c.rest), second, items(message, c));
    }
  }
  for (const auto& [from, to] : {std::pair(c.begin, c.inner), std::pair(c.rest, c.end)}) {
    if (from < to) {
      part(first_, from, to).sub_(part(gradient, from, to));
      edges_.push_back(from / wire_.format().numbers);
    }
  }
}

void Coordination::center(
    const at::Tensor& gradient, const at::Tensor& mean, std::int64_t begin, std::int64_t count) {
  wire_.encode(
      gradient.narrow(0, begin, count), mean.narrow(0, begin, count),
      items(messages_.view({-1}), cut(begin, count)));
}

void Coordination::send() {
  finish();
  const at::Tensor message = messages_.view({-1});
  const DifferenceWire::Format& format = wire_.format();
  std::ranges::sort(edges_);
  edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
  for (const std::int64_t item : edges_) {
    const std::int64_t begin = item * format.numbers;
    wire_.encode(
        first_.narrow(0, begin, std::min(format.numbers, numel_ - begin)), {},
        message.narrow(0, item * format.elements, format.elements));
  }
  edges_.clear();
  exchange();
}

void Coordination::archive(state::Archive& archive, const std::string& prefix) {
  if (archive.is_loading()) {
    first_ = at::zeros({numel_}, sum_.options());
  }
  archive.tensor(prefix + "first", first_, state::Owner::Worker);
  // The raw bytes viewed as fp32, because a checkpoint holds only fp32 numbers.
  at::Tensor bytes = kept_.defined() ? kept_.view(at::kFloat) : at::Tensor();
  archive.tensor(prefix + "kept", bytes, state::Owner::Worker);
}

void Coordination::send_rows(const at::Tensor& differences) {
  finish();
  for (std::int64_t k = 0; k < pairs_; ++k) {
    wire_.encode(differences[k], {}, messages_[k]);
  }
  exchange();
}

void Coordination::exchange() {
  if (workers_ > 1 && pairs_ > 1) {
    const std::int64_t elements = wire_.format().elements;
    std::int64_t at = 0;
    for (int w = 0; w < workers_; ++w) {
      const DifferenceWire::ItemRange share = wire_.share(workers_, w);
      const std::int64_t count = counts_[static_cast<std::size_t>(w)];
      outbox_.narrow(0, at, count)
          .view({pairs_, share.size() * elements})
          .copy_(messages_.narrow(1, share.begin * elements, share.size() * elements));
      at += count;
    }
  }
  if (workers_ > 1) {
    pending_ = group_->all_to_all(inbox_, outbox_, counts_, comm::Purpose::Orders);
  }
  stage_ = Stage::Differences;
  if (workers_ == 1) {
    finish();
  }
}

// For rows j from row_ on: computes <S, D_j>, and <D_j, D_i> for i < j, and starts to sum them over
// the workers.
void Coordination::start_run() {
  triangle_ = rows_->products(row_, std::min(kProductRows, rows_->size() - row_), sum_);
  if (workers_ > 1) {
    pending_ = group_->all_reduce(triangle_, comm::ReduceOp::Sum, comm::Purpose::Orders);
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
  if (stage_ == Stage::Differences) {
    pending_.wait();
    rows_.emplace(wire_, inbox_, workers_, pairs_);
    row_ = 0;
    stage_ = Stage::Products;
    start_run();
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
