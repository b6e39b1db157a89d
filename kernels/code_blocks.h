// Blocks of at most 4,096 numbers of a flat buffer that are coded together: no
// block reaches over the end of a tensor. Codes are written in groups of 32
// numbers; what is left of a tensor's last group holds codes of zeros.
#pragma once

#include <cstdint>

namespace abtrain::kernels {

constexpr int kBlock = 4096;  // numbers
constexpr int kGroup = 32;

struct CodeBlock {
  std::int64_t begin;  // of its first number in the buffer
  std::int64_t group;  // groups of all blocks before it
  std::int64_t count;  // numbers, 1 .. kBlock
  std::int64_t slot;   // the tensor it belongs to
};

// Sums over a block are taken so on every device: lane i of kLanes adds number
// i and number i + kLanes, then the upper half of the lanes is added to the
// lower one until one is left.
constexpr int kLanes = kBlock / 2;
// Lanes that add up a tensor's blocks in the same way: lane i has blocks i,
// i + kTensorLanes, ...
constexpr int kTensorLanes = 256;

}  // namespace abtrain::kernels
