// Numbers as -a, 0 or +a with a level a of their tensor: the codes of the reducers
// threshold and ternary. Tensors follow one another in a flat fp32 buffer from 0
// on, without gaps; how codes lie is in kernels/level_codes.h.
//
// The same bits on CPU and GPU, sums too; on CUDA queued on this thread's current
// stream. Levels and cuts are fp32, one a tensor, on u's device: nothing is read
// back. A number that is not finite makes its tensor's level, and so the mean, NaN or
// infinite.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/level_codes.h"
#include "ops/code_blocks.h"

namespace abtrain::ops {

// Of a worker's record: levels, then codes of two bits.
inline std::int64_t record_bytes(std::int64_t tensors, std::int64_t numel) {
  return 4 * tensors + kernels::packed_bytes(numel);
}

class LevelTable {
 public:
  LevelTable() = default;
  // Numbers of each tensor, at least 1.
  explicit LevelTable(const std::vector<std::int64_t>& numels);

  std::int64_t tensors() const {
    return static_cast<std::int64_t>(ends_.size());
  }
  std::int64_t numel() const {
    return ends_.empty() ? 0 : ends_.back();
  }
  std::int64_t record_bytes() const {
    return ops::record_bytes(tensors(), numel());
  }
  // The tensors in blocks, for survivors() and largest().
  CodeBlocks& blocks() {
    return blocks_;
  }
  // Where the device reads it, and the tensors' numbers (fp32). The first call
  // for a device other than the CPU copies them.
  kernels::LevelTensors on(c10::Device device);
  const at::Tensor& sizes_on(c10::Device device);

 private:
  std::vector<std::int64_t> ends_, firsts_;
  CodeBlocks blocks_;
  at::Tensor sizes_, copy_;
};

// sums (fp32, 2 a tensor): the sum of |u| where it is above the tensor's cut, and
// the number of those; without any 0, NaN where the cut is not finite.
void survivors(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& cuts,
    const at::Tensor& sums);

// most (fp32, 1 a tensor): the largest |u|; infinite where one is not finite.
void largest(const at::Tensor& u, LevelTable& table, const at::Tensor& most);

// What a number is sent for: where |u| is above the cut, or, without cuts, with
// the probability |u| / a (to 2^-24). Random numbers: four a block of the stream
// of random_key(seed, Rounding), `step` and `stream`.
struct LevelCoding {
  at::Tensor cuts = {};  // undefined: by chance
  bool residual = false;  // u becomes what was not sent
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t stream = 0;
};
// codes: uint8, packed_bytes(numel).
void encode_levels(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& levels,
    const LevelCoding& coding,
    const at::Tensor& codes);
// The same, a byte each (numel): 0, 1, 2 for -a, 0, +a, to be added up.
void encode_byte_levels(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& levels,
    const LevelCoding& coding,
    const at::Tensor& codes);

// Of n workers' records (`in`, uint8, one after another, in rank order) the mean.
void average_levels(
    const at::Tensor& in,
    int workers,
    LevelTable& table,
    const at::Tensor& estimate);
// Of the sum of at most 127 workers' bytes, with levels that all share.
void average_byte_levels(
    const at::Tensor& sums,
    int workers,
    LevelTable& table,
    const at::Tensor& levels,
    const at::Tensor& estimate);

}  // namespace abtrain::ops
