// Whole rows (a convolution's output filters) of tensors in a flat fp32 buffer:
// how important each is, and sending the most important ones of every tensor.
//
// The same bits on CPU and GPU, sums too (their order is in kernels/rows.h); on
// CUDA queued on this thread's current stream, nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/rows.h"

namespace abtrain::ops {

class RowTable {
 public:
  struct Tensor {
    std::int64_t begin = 0;  // in the buffer
    std::int64_t rows = 0;
    std::int64_t length = 0;
    std::int64_t chosen = 0;  // 1 .. rows
  };

  RowTable() = default;
  // In ascending order, without overlap.
  explicit RowTable(const std::vector<Tensor>& tensors);

  int size() const {
    return static_cast<int>(tensors_.size());
  }
  // Of all tensors: rows, chosen rows, numbers in these.
  std::int64_t rows() const {
    return rows_;
  }
  std::int64_t chosen() const {
    return chosen_;
  }
  std::int64_t values() const {
    return values_;
  }
  // First number after the last tensor.
  std::int64_t end() const {
    return end_;
  }
  // The table where the device reads it. The first call for a device other than
  // the CPU copies it.
  const kernels::RowTensor* on(c10::Device device);

 private:
  std::vector<kernels::RowTensor> tensors_;
  std::int64_t rows_ = 0;
  std::int64_t chosen_ = 0;
  std::int64_t values_ = 0;
  std::int64_t end_ = 0;
  at::Tensor copy_;
};

// norms (fp32, rows()): squared norms of the rows, tensor after tensor.
void row_norms(const at::Tensor& u, RowTable& table, const at::Tensor& norms);

// chosen (int32, chosen()): of each tensor the rows with the largest norms,
// largest first, the lower one of two equal ones; counted within the tensor.
// A NaN counts as largest.
void choose_rows(
    const at::Tensor& norms,
    RowTable& table,
    const at::Tensor& chosen);

// wire (fp16, values()) = rows / members; of the rows remains in u what
// members * wire does not say.
void send_rows(
    const at::Tensor& u,
    RowTable& table,
    const at::Tensor& chosen,
    int members,
    const at::Tensor& wire);

// estimate (fp32) += wire, in the chosen rows.
void add_rows(
    const at::Tensor& wire,
    RowTable& table,
    const at::Tensor& chosen,
    const at::Tensor& estimate);

}  // namespace abtrain::ops
