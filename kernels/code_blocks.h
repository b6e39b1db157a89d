// A code block consists of at most 4,096 adjacent elements of a flat buffer, which are compressed
// together. It lies within one tensor. Codes are written in groups of 32 elements; the unused part
// of a tensor's last group holds the codes of zeros. (Packed codes are an exception: see
// codes/ternary_codes.h.)
#pragma once

#include <cstdint>

namespace abtrain::kernels {

constexpr int kBlock = 4096;  // elements
constexpr int kGroup = 32;

struct CodeBlock {
  std::int64_t begin;  // index of its first element in the buffer
  std::int64_t group;  // number of groups in all blocks before it
  std::int64_t count;  // element count, 1 .. kBlock
  std::int64_t slot;   // index of the tensor that it belongs to
};

// The order in which a block is summed, the same on every device. There are kLanes partial sums,
// the lanes: lane i adds elements i and i + kLanes of the block; then the upper half of the lanes
// is added to the lower half until one lane is left.
constexpr int kLanes = kBlock / 2;
// The sums of a tensor's blocks are added in kTensorLanes lanes: lane i adds the sums of the
// tensor's blocks i, i + kTensorLanes, ...; then the lanes are added by halves as above.
constexpr int kTensorLanes = 256;

}  // namespace abtrain::kernels
