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

DifferenceRows::DifferenceRows(
    const DifferenceWire& wire, const at::Tensor& items, std::int64_t workers, std::int64_t pairs)
    : workers_(workers),
      pairs_(pairs),
      are_codes_(items.scalar_type() == at::kByte && items.is_cpu()) {
  const at::Tensor flat = are_codes_ ? items : wire.decode(items);
  const std::int64_t width = flat.numel() / (workers * pairs);  // 0: a share without records
  const at::Tensor rows = flat.view({workers, pairs, width});
  rows_ = (are_codes_ ? rows : rows.transpose(0, 1)).reshape({pairs * workers, width});
}

std::vector<std::int64_t> DifferenceRows::places(std::int64_t begin, std::int64_t count) const {
  std::vector<std::int64_t> places;
  for (std::int64_t row = begin; row < begin + count; ++row) {
    places.push_back(row % workers_ * pairs_ + row / workers_);
  }
  return places;
}

at::Tensor DifferenceRows::products(std::int64_t begin, std::int64_t count, const at::Tensor& sum) {
  if (are_codes_) {
    const at::Tensor out = at::empty({count * (count + 1) / 2}, sum.options());
    ops::difference_products(rows_, places(begin, count), sum, out);
    return out;
  }
  const at::Tensor rows = rows_.narrow(0, begin, count);
  const at::Tensor with_sum = at::mv(rows, sum);
  return count == 1 ? with_sum : triangle_.pack(at::mm(rows, rows.t()), with_sum);
}

void DifferenceRows::add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum) const {
  if (are_codes_) {
    ops::add_differences(rows_, places(begin, signs.numel()), signs, sum);
  } else {
    sum.addmv_(rows_.narrow(0, begin, signs.numel()).t(), signs.to(at::kFloat));
  }
}

}  // namespace abtrain::orders
