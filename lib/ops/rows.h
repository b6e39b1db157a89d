// Ranks whole rows (a convolution's output filters) of the tensors in a flat fp32 buffer by their
// norms, and sends the rows of every tensor with the largest norms.
//
// CPU and GPU results are bit-identical; kernels/blocks/rows.h defines the order of the sums. On
// CUDA the kernels are queued on this thread's current stream, and nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/blocks/rows.h"
#include "ops/device_table.h"

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
  // Tensors must be in ascending order and must not overlap.
  explicit RowTable(const std::vector<Tensor>& tensors);

  int size() const {
    return static_cast<int>(tensors_.host.size());
  }
  // Totals over all tensors: rows, chosen rows, and elements in chosen rows.
  std::int64_t rows() const {
    return rows_;
  }
  std::int64_t chosen() const {
    return chosen_;
  }
  std::int64_t values() const {
    return values_;
  }
  // One past the last element of the last tensor.
  std::int64_t end() const {
    return end_;
  }
  // The table in memory that the device can read.
  const kernels::RowTensor* on(c10::Device device) {
    return tensors_.on(device);
  }

 private:
  DeviceTable<kernels::RowTensor> tensors_;
  std::int64_t rows_ = 0;
  std::int64_t chosen_ = 0;
  std::int64_t values_ = 0;
  std::int64_t end_ = 0;
};

// norms (fp32, rows()): the squared norm of each row, tensor after tensor.
void row_norms(const at::Tensor& u, RowTable& table, const at::Tensor& norms);

// chosen (int32, chosen()): for each tensor the rows with the largest norms, largest first; among
// equal norms, the lower index first. Indices count from the tensor's first row. NaN counts as
// largest.
void choose_rows(const at::Tensor& norms, RowTable& table, const at::Tensor& chosen);

// wire (fp16, values()) = chosen rows / members (the number of workers in the mean). Then members *
// wire is subtracted from these rows of u.
void send_rows(
    const at::Tensor& u, RowTable& table, const at::Tensor& chosen, int members,
    const at::Tensor& wire);

// Adds wire to the chosen rows of estimate (fp32).
void add_rows(
    const at::Tensor& wire, RowTable& table, const at::Tensor& chosen, const at::Tensor& estimate);

}  // namespace abtrain::ops
