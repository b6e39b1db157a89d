// Gradient differences as one worker has received them: its share of the
// coordinates of every worker's rows, with the operations that balancing needs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace abtrain::orders {

// Packs products into the triangle that ops::pair_signs() takes.
class ProductTriangle {
 public:
  // Takes the matrix of all <D_j, D_i>, which may be overwritten, and the
  // vector of all <S, D_j>.
  at::Tensor pack(const at::Tensor& all, const at::Tensor& with_sum);

 private:
  at::Tensor places_;  // cached: indices into a matrix of the last size
};

// Rows D_0, D_1, ...; `sum` is this worker's share of S, flat fp32.
class DifferenceRows {
 public:
  virtual ~DifferenceRows() = default;
  virtual std::int64_t size() const = 0;
  // The products of rows begin .. begin + count - 1, as ops::pair_signs() takes
  // them.
  virtual at::Tensor products(std::int64_t begin, std::int64_t count, const at::Tensor& sum) = 0;
  // Adds the rows from `begin` on to `sum`, each with its sign (int8).
  virtual void add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum) = 0;
};

// Rows of fp32 numbers: a matrix, rows x numbers.
class FloatRows : public DifferenceRows {
 public:
  explicit FloatRows(at::Tensor rows) : rows_(std::move(rows)) {}
  std::int64_t size() const override {
    return rows_.size(0);
  }
  at::Tensor products(std::int64_t begin, std::int64_t count, const at::Tensor& sum) override;
  void add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum) override;

 private:
  at::Tensor rows_;
  ProductTriangle triangle_;
};

// Rows of records (ops/difference_codes.h) on the CPU, never decoded as a
// whole. In `records` the rows lie in the order workers x pairs; they are
// numbered in the order pairs x workers.
class CodeRows : public DifferenceRows {
 public:
  CodeRows(at::Tensor records, std::int64_t workers, std::int64_t pairs)
      : records_(std::move(records)), workers_(workers), pairs_(pairs) {}
  std::int64_t size() const override {
    return workers_ * pairs_;
  }
  at::Tensor products(std::int64_t begin, std::int64_t count, const at::Tensor& sum) override;
  void add(std::int64_t begin, const at::Tensor& signs, const at::Tensor& sum) override;

 private:
  // The row of the tensor for each of rows begin .. begin + count - 1.
  std::vector<std::int64_t> places(std::int64_t begin, std::int64_t count) const;

  at::Tensor records_;
  std::int64_t workers_;
  std::int64_t pairs_;
};

}  // namespace abtrain::orders
