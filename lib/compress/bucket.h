// Tensors in a flat gradient buffer, and the buckets in which they are sent.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace abtrain::compress {

// Where a tensor's gradient lies, row by row: sizes[0] rows (output features of
// a linear layer; of a convolution output filters, O x kh x kw x I in memory).
struct Slot {
  std::string name;
  std::int64_t offset = 0;         // of its first number in the buffer
  std::vector<std::int64_t> sizes;  // as the parameter's
  int position = 0;                 // in the order of the forward pass

  std::int64_t numel() const {
    return std::accumulate(
        sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::int64_t rows() const {
    return sizes.empty() ? 1 : sizes[0];
  }
};

// A run of numbers in the buffer.
struct Range {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

// Slots that are sent together, in the order of the forward pass.
struct Bucket {
  std::vector<Slot> slots;
  std::int64_t numel() const;
  // The buffer's runs that its slots fill, neighbours joined.
  std::vector<Range> ranges() const;
};
std::vector<Range> ranges_of(const std::vector<Slot>& slots);
std::int64_t numel_of(const std::vector<Range>& ranges);

// packed = scale * the ranges of a flat buffer, one after the other; each of fp32,
// fp16, bf16.
void pack(
    const at::Tensor& buffer,
    const std::vector<Range>& ranges,
    float scale,
    const at::Tensor& packed);
// And back, into the ranges.
void unpack(
    const at::Tensor& packed,
    const std::vector<Range>& ranges,
    const at::Tensor& buffer);

// Cuts the slots into buckets, those that the backward pass reaches first in the
// first one. As PyTorch's DistributedDataParallel does: a bucket is full when it
// holds `mebibytes` or more (fp32), the first one already at 1, so that sending
// begins early. 0: one bucket. Slots without numbers are left out.
std::vector<Bucket> make_buckets(std::vector<Slot> slots, double mebibytes);

}  // namespace abtrain::compress
