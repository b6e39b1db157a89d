// Tensors in a flat gradient buffer, and the buckets in which they are sent.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace abtrain::compress {

// Where a tensor's gradient lies, row by row, with sizes[0] rows. These are the
// output features of a linear layer, or the output filters of a convolution,
// which is O x kh x kw x I in memory.
struct Slot {
  std::string name;
  std::int64_t offset = 0;          // of its first element in the buffer
  std::vector<std::int64_t> sizes;  // same as the parameter's
  int position = 0;                 // in the order of the forward pass

  std::int64_t numel() const {
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
  }
  std::int64_t rows() const {
    return sizes.empty() ? 1 : sizes[0];
  }
};

// A contiguous range of elements in a flat buffer.
struct Range {
  std::int64_t begin = 0;
  std::int64_t size = 0;
  std::int64_t place = 0;  // among ranges that are packed one after another

  at::Tensor of(const at::Tensor& buffer) const {
    return buffer.narrow(0, begin, size);
  }
  at::Tensor in(const at::Tensor& packed) const {
    return packed.narrow(0, place, size);
  }
};

// Slots that are sent together, in the order of the forward pass.
struct Bucket {
  std::vector<Slot> slots;
  std::vector<Range> ranges;  // ranges_of(slots), which make_buckets() sets
  std::int64_t numel() const;
};

// The ranges of the buffer that these slots fill, ascending; adjacent ones are
// joined.
std::vector<Range> ranges_of(std::vector<Slot> slots);
std::int64_t numel_of(const std::vector<Range>& ranges);

// Moves the slots to lie one after another from 0 on; returns their end.
std::int64_t line_up(std::vector<Slot>& slots);

// Some slots of a buffer as they lie in a buffer of their own, one after another
// in the same order, so that adjacent tensors stay adjacent.
struct PackedSlots {
  explicit PackedSlots(std::vector<Slot> of_buffer);

  std::vector<Range> ranges;  // of the first buffer
  std::vector<Slot> slots;    // with their places in the second one
  std::int64_t numel;
};

// packed = scale * the ranges of a flat buffer, one after another. Each tensor
// is fp32, fp16 or bf16.
void pack(
    const at::Tensor& buffer, const std::vector<Range>& ranges, float scale,
    const at::Tensor& packed);
// The reverse: copies `packed` back into the ranges.
void unpack(const at::Tensor& packed, const std::vector<Range>& ranges, const at::Tensor& buffer);

// Divides the slots into buckets; the first bucket holds those that the
// backward pass reaches first. As in PyTorch's DistributedDataParallel, a
// bucket is full once it holds `mebibytes` (of fp32) or more, and the first one
// once it holds 1, so that sending begins early. With `mebibytes` 0 there is
// one bucket. Slots without elements are left out.
std::vector<Bucket> make_buckets(std::vector<Slot> slots, double mebibytes);

}  // namespace abtrain::compress
