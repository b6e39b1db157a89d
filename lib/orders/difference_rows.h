// Differences of gradients as one worker has received them: its share of the
// coordinates of every worker's rows, and what the balancing of them needs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace abtrain::orders {

// Products as ops::pair_signs() wants them.
class ProductTriangle {
 public:
  // Of a matrix of all <D_j, D_i>, which may be overwritten, and a vector of
  // <S, D_j>.
  at::Tensor pack(const at::Tensor& all, const at::Tensor& with_sum);

 private:
  at::Tensor places_;  // in the matrix, of the last size
};

// Rows D_0, D_1, ...; `sum`: the share of S, flat fp32.
class DifferenceRows {
 public:
  virtual ~DifferenceRows() = default;
  virtual std::int64_t size() const = 0;
  // Of rows begin .. begin + count - 1, as ops::pair_signs() wants them.
  virtual at::Tensor
  products(std::int64_t begin, std::int64_t count, const at::Tensor& sum) = 0;
  // sum += the rows from `begin` on, each with its sign (int8).
  virtual void
  add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum) = 0;
};

// Of fp32 numbers, rows x numbers.
class FloatRows : public DifferenceRows {
 public:
  explicit FloatRows(at::Tensor rows) : rows_(std::move(rows)) {}
  std::int64_t size() const override {
    return rows_.size(0);
  }
  at::Tensor products(
      std::int64_t begin,
      std::int64_t count,
      const at::Tensor& sum) override;
  void add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum)
      override;

 private:
  at::Tensor rows_;
  ProductTriangle triangle_;
};

// Of records (ops/difference_codes.h) on the CPU, never decoded as a whole: the
// rows lie in `records` as workers x pairs, and count as pairs x workers.
class CodeRows : public DifferenceRows {
 public:
  CodeRows(at::Tensor records, std::int64_t workers, std::int64_t pairs);
  std::int64_t size() const override {
    return workers_ * pairs_;
  }
  at::Tensor products(
      std::int64_t begin,
      std::int64_t count,
      const at::Tensor& sum) override;
  void add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum)
      override;

 private:
  // Where rows begin .. begin + count - 1 begin, in rows of the tensor.
  std::vector<std::int64_t> places(std::int64_t begin, std::int64_t count)
      const;

  at::Tensor records_;
  std::int64_t workers_;
  std::int64_t pairs_;
};

}  // namespace abtrain::orders
