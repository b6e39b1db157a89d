#include "orders/coordination.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/tril_indices.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "base/error.h"
#include "ops/pair_signs.h"

namespace abtrain::orders {

at::Tensor
ProductTriangle::pack(const at::Tensor& all, const at::Tensor& with_sum) {
  const std::int64_t n = with_sum.numel();
  if (!places_.defined() || places_.numel() != n * (n + 1) / 2) {
    const at::Tensor places =
        at::tril_indices(n, n, 0, all.options().dtype(at::kLong));
    places_ = places[0] * n + places[1];
  }
  const at::Tensor square = all.contiguous();
  square.diagonal().copy_(with_sum);
  return square.view({-1}).index_select(0, places_);
}

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
      pairs_(pairs) {
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

void Coordination::send(const at::Tensor& first, const at::Tensor& second) {
  const at::NoGradGuard no_grad;
  ABT_ASSERT(pairs_ == 1, "one pair, expected ", pairs_);
  finish();
  wire_->encode(first, second, messages_.view({-1}));
  exchange();
}

void Coordination::send(const at::Tensor& differences) {
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
    rows_ = messages_;
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
  const at::Tensor decoded =
      wire_->decode(inbox_).view({workers_, pairs_, sum_.numel()});
  // Pair after pair, of each the workers in their order.
  rows_ = decoded.transpose(0, 1).reshape({pairs_ * workers_, sum_.numel()});
  begin_products();
}

void Coordination::begin_products() {
  row_ = 0;
  stage_ = Stage::Products;
  start_run();
}

// Of rows row_, row_ + 1, ...: <S, D_j>, and <D_j, D_i> before.
void Coordination::start_run() {
  const std::int64_t count = std::min(kProductRows, rows_.size(0) - row_);
  const at::Tensor rows = rows_.narrow(0, row_, count);
  triangle_ = at::mv(rows, sum_);
  if (count > 1) {
    triangle_ = packer_.pack(at::mm(rows, rows.t()), triangle_);
  }
  if (workers_ > 1) {
    pending_ = group_->all_reduce(
        triangle_, comm::ReduceOp::Sum, comm::Purpose::Orders);
  }
}

void Coordination::end_products() {
  for (;;) {
    pending_.wait();
    const std::int64_t count = std::min(kProductRows, rows_.size(0) - row_);
    const at::Tensor signs = signs_.narrow(0, row_, count);
    ops::pair_signs(triangle_, signs);
    sum_.addmv_(rows_.narrow(0, row_, count).t(), signs.to(at::kFloat));
    row_ += count;
    if (row_ == rows_.size(0)) {
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
