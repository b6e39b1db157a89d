// Tensors in a flat gradient buffer, and the buckets in which they are sent.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace abtrain::compress {

// The place of a tensor's gradient in a buffer: sizes[0] rows, one after another. A row belongs to
// one output feature of a linear layer, or to one output filter of a convolution (weights O x kh x
// kw x I in memory).
struct Slot {
  std::string name;
  std::int64_t offset = 0;          // of the first element in the buffer
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
  std::int64_t place = 0;  // offset in a buffer of packed ranges

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
  std::vector<Range> ranges;  // ranges_of(slots); set by make_buckets()
  std::int64_t numel() const;
};

// Returns the ranges of the buffer that the slots fill, in ascending order; adjacent ranges are
// joined.
std::vector<Range> ranges_of(std::vector<Slot> slots);
std::int64_t numel_of(const std::vector<Range>& ranges);

// Sets the slots' offsets so that they lie one after another from 0 on; returns the end of the last
// slot.
std::int64_t line_up(std::vector<Slot>& slots);

// Some slots of a buffer, packed into a second buffer in the same order, so that adjacent tensors
// stay adjacent.
struct PackedSlots {
  explicit PackedSlots(std::vector<Slot> of_buffer);

  std::vector<Range> ranges;  // of the first buffer
  std::vector<Slot> slots;    // with offsets in the second buffer
  std::int64_t numel;
};

// Writes the ranges of a flat buffer, times `scale`, to `packed`, one after another. Each tensor is
// fp32, fp16 or bf16.
void pack(
    const at::Tensor& buffer, const std::vector<Range>& ranges, float scale,
    const at::Tensor& packed);
// The reverse, without a scale: copies `packed` back into the ranges.
void unpack(const at::Tensor& packed, const std::vector<Range>& ranges, const at::Tensor& buffer);

// Divides the slots into buckets; the first bucket holds the slots that the backward pass reaches
// first. As in PyTorch's DistributedDataParallel, a bucket is full once it holds `mebibytes` MiB of
// fp32 or more; the first one is full at 1 MiB, so that sending begins early. `mebibytes` 0: one
// bucket. Omits slots without elements.
std::vector<Bucket> make_buckets(std::vector<Slot> slots, double mebibytes);

}  // namespace abtrain::compress
