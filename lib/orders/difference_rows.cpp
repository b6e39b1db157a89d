#include "orders/difference_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/tril_indices.h>

#include "ops/difference_codes.h"

namespace abtrain::orders {

at::Tensor ProductTriangle::pack(const at::Tensor& all, const at::Tensor& with_sum) {
  const std::int64_t n = with_sum.numel();
  if (!places_.defined() || places_.numel() != n * (n + 1) / 2) {
    const at::Tensor places = at::tril_indices(n, n, 0, all.options().dtype(at::kLong));
    places_ = places[0] * n + places[1];
  }
  const at::Tensor square = all.contiguous();
  square.diagonal().copy_(with_sum);
  return square.view({-1}).index_select(0, places_);
}

at::Tensor FloatRows::products(std::int64_t begin, std::int64_t count, const at::Tensor& sum) {
  const at::Tensor rows = rows_.narrow(0, begin, count);
  const at::Tensor with_sum = at::mv(rows, sum);
  return count == 1 ? with_sum : triangle_.pack(at::mm(rows, rows.t()), with_sum);
}

void FloatRows::add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum) {
  sum.addmv_(rows_.narrow(0, begin, signs.numel()).t(), signs.to(at::kFloat));
}

std::vector<std::int64_t> CodeRows::places(std::int64_t begin, std::int64_t count) const {
  std::vector<std::int64_t> places;
  for (std::int64_t row = begin; row < begin + count; ++row) {
    places.push_back(row % workers_ * pairs_ + row / workers_);
  }
  return places;
}

at::Tensor CodeRows::products(std::int64_t begin, std::int64_t count, const at::Tensor& sum) {
  const at::Tensor out = at::empty({count * (count + 1) / 2}, sum.options());
  ops::difference_products(records_.view({size(), -1}), places(begin, count), sum, out);
  return out;
}

void CodeRows::add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum) {
  ops::add_differences(records_.view({size(), -1}), places(begin, signs.numel()), signs, sum);
}

}  // namespace abtrain::orders
