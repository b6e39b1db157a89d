#include "nn/weight.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/accumulate.h>
#include <c10/util/strides.h>

#include <utility>

#include "linalg/grid.h"

namespace abtrain::nn {

namespace {

// Converts a weight stored channels-last to X x (I*kh*kw), in the order I, kh, kw.
at::Tensor as_rows(const at::Tensor& stored) {
  return stored.dim() == 4 ? stored.flatten(1) : stored;
}

// The inverse of as_rows(): rows as a weight of these sizes, stored channels-last.
at::Tensor from_rows(const at::Tensor& rows, const std::vector<std::int64_t>& sizes) {
  return sizes.size() == 4 ? rows.reshape(sizes).contiguous(at::MemoryFormat::ChannelsLast)
                           : rows.contiguous();
}

}  // namespace

std::int64_t Weight::in_features() const {
  return c10::multiply_integers(sizes_.begin() + 1, sizes_.end());
}

at::Tensor Weight::turned(const at::Tensor& matrix) const {
  return transposed() ? linalg::transposed(matrix) : matrix;
}

at::Tensor Weight::to_matrix(const at::Tensor& weight) const {
  const at::Tensor rows = as_rows(weight);
  return turned(grid_ == 1 ? rows : linalg::in_blocks(rows, grid_));
}

at::Tensor Weight::from_matrix(const at::Tensor& matrix) const {
  const at::Tensor rows = turned(matrix);
  return from_rows(linalg::is_grid(rows) ? linalg::joined(rows) : rows, sizes_);
}

void Weight::set_factors(const linalg::LowRankPair& pair) {
  dense.reset();
  grid_ = linalg::is_grid(pair.a) ? pair.a.size(0) : 1;
  factor(Factor::A) = to_stored(Factor::A, pair.a);
  factor(Factor::B) = to_stored(Factor::B, pair.b);
}

void Weight::set_dense(at::Tensor weight) {
  dense = std::move(weight);
  inner.reset();
  outer.reset();
}

void Weight::set_empty(std::int64_t rank, const at::TensorOptions& options) {
  const auto empty = [&](const std::vector<std::int64_t>& sizes) {
    return at::empty(
        sizes, options,
        sizes.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  };
  if (rank == 0) {
    set_dense(empty(sizes_));
    return;
  }
  dense.reset();
  for (const Factor which : {Factor::A, Factor::B}) {
    factor(which) = empty(stored_sizes(which, rank));
  }
}

linalg::LowRankPair Weight::pair() const {
  return {
      to_matrix(Factor::A, transposed() ? inner : outer),
      to_matrix(Factor::B, transposed() ? outer : inner)};
}

at::Tensor Weight::merged() const {
  if (!is_factored()) {
    return dense;
  }
  const auto product = [&] {
    if (grid_ == 1) {
      return from_rows(at::matmul(outer, as_rows(inner)), sizes_);
    }
    const auto [a, b] = pair();
    return from_matrix(at::matmul(a, b));
  };
  return rest.defined() ? at::add(rest.to(outer.scalar_type()), product(), scale) : product();
}

linalg::LowRankPair Weight::change() const {
  linalg::LowRankPair own = pair();
  own.a = own.a * scale;
  if (start.a.defined()) {
    own = {at::cat({own.a, -start.a}, -1), at::cat({own.b, start.b}, -2)};
  }
  return own;
}

void Weight::adopt_form(const Weight& other) {
  adapts_ = other.adapts_;
  grid_ = other.grid_;
  rest = other.rest;
  scale = other.scale;
  start = other.start;
}

bool Weight::product_is_cheaper(std::int64_t positions) const {
  const auto all = static_cast<double>(numel());
  const auto r = static_cast<double>(rank());
  const auto p = static_cast<double>(positions);
  return all * (r / static_cast<double>(grid_) + p) < p * r * static_cast<double>(m() + n());
}

std::vector<std::int64_t> Weight::stored_sizes(Factor which, std::int64_t rank) const {
  if (!is_inner(which)) {
    return {out_features(), rank};
  }
  std::vector<std::int64_t> sizes = sizes_;
  sizes[0] = grid_ * rank;
  sizes[1] /= grid_;
  return sizes;
}

at::Tensor Weight::to_stored(Factor which, const at::Tensor& matrix) const {
  const at::Tensor rows = turned(matrix);
  const bool inside = is_inner(which);
  if (grid_ == 1) {
    return from_rows(rows, stored_sizes(which, rows.size(inside ? 0 : 1)));
  }
  const at::Tensor stored = inside ? linalg::in_stacks(rows) : linalg::joined(rows);
  return from_rows(stored, stored_sizes(which, grid_ * rows.size(inside ? 2 : 3)));
}

at::Tensor Weight::to_matrix(Factor which, const at::Tensor& stored) const {
  const at::Tensor rows = as_rows(stored);
  if (grid_ == 1) {
    return turned(rows);
  }
  return turned(
      is_inner(which) ? linalg::from_stacks(rows, grid_) : linalg::in_blocks(rows, grid_));
}

at::Tensor view_at(
    const at::Tensor& flat, std::int64_t offset, const std::vector<std::int64_t>& sizes) {
  const auto row_major = c10::contiguous_strides(sizes);
  std::vector<std::int64_t> strides(row_major.begin(), row_major.end());
  if (sizes.size() == 4) {
    strides = c10::get_channels_last_strides_2d(at::IntArrayRef(sizes));
  }
  // A fresh tensor over the storage, not an autograd view: it may be a leaf with gradients while
  // the flat buffer beneath it is updated.
  at::Tensor view = at::empty({0}, flat.options());
  view.set_(flat.storage(), flat.storage_offset() + offset, sizes, strides);
  return view;
}

}  // namespace abtrain::nn
