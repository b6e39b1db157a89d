// The gradient differences ("rows") that one worker has received: its share of the coordinates of
// every worker's differences, with the operations that balancing needs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "orders/difference_wire.h"

namespace abtrain::orders {

// Packs products into the triangle that ops::pair_signs() takes.
class ProductTriangle {
 public:
  // Takes the matrix of all <D_j, D_i>, which may be overwritten, and the vector of all <S, D_j>.
  at::Tensor pack(const at::Tensor& all, const at::Tensor& with_sum);

 private:
  at::Tensor places_;  // cached: indices into a matrix of the last size
};

// Rows D_0, D_1, ...; `sum` is this worker's share of S, flat fp32.
class DifferenceRows {
 public:
  // `items`: rows ordered by worker, then by pair. The row numbers below count by pair, then by
  // worker.
  DifferenceRows(
      const DifferenceWire& wire, const at::Tensor& items, std::int64_t workers,
      std::int64_t pairs);
  std::int64_t size() const {
    return rows_.size(0);
  }
  // The products of rows begin .. begin + count - 1, in the layout of ops::pair_signs().
  at::Tensor products(std::int64_t begin, std::int64_t count, const at::Tensor& sum);
  // Adds the rows from `begin` on to `sum`, each with its sign (int8).
  void add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum) const;

 private:
  // The indices of rows begin .. begin + count - 1 in rows_, if rows_ holds codes.
  std::vector<std::int64_t> places(std::int64_t begin, std::int64_t count) const;

  std::int64_t workers_, pairs_;
  bool are_codes_;
  // rows x numbers, fp32. But codes (ops/difference_codes.h) on the CPU are never decoded as a
  // whole: then rows x bytes, in the order received.
  at::Tensor rows_;
  ProductTriangle triangle_;
};

}  // namespace abtrain::orders
