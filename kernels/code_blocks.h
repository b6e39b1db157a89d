// Blocks of at most 4,096 elements of a flat buffer that are coded together. No
// block extends past the end of a tensor. Codes are written in groups of 32
// elements; the unused part of a tensor's last group holds codes of zeros.
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

// The order of a sum over a block, the same on every device: lane i of kLanes
// adds element i and element i + kLanes; then the upper half of the lanes is
// added to the lower half until one lane is left.
constexpr int kLanes = kBlock / 2;
// The lanes that sum the blocks of a tensor in the same way: lane i adds blocks
// i, i + kTensorLanes, ...
constexpr int kTensorLanes = 256;

}  // namespace abtrain::kernels
