// Numbers as -a, 0 or +a with a level a of their tensor: the codes of the
// reducers threshold and ternary. Tensors follow one another in a flat fp32
// buffer from 0 on, without gaps; how codes lie is in kernels/level_codes.h.
//
// The same bits on CPU and GPU, sums too; on CUDA queued on this thread's
// current stream. Levels and cuts are fp32, one a tensor, on u's device:
// nothing is read back. A number that is not finite makes its tensor's level,
// and so the mean, NaN or infinite.
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
    return blocks_.tensors();
  }
  std::int64_t numel() const {
    return blocks_.end();
  }
  std::int64_t blocks() const {
    return blocks_.size();
  }
  std::int64_t record_bytes() const {
    return ops::record_bytes(tensors(), numel());
  }
  // Where the device reads it, and the tensors' numbers (fp32). The first call
  // for a device other than the CPU copies them.
  kernels::LevelTensors on(c10::Device device);
  const at::Tensor& sizes_on(c10::Device device);

 private:
  CodeBlocks blocks_;
  std::vector<std::int64_t> windows_;
  at::Tensor sizes_, copy_;
};

// Codes to be gathered, packed_bytes(numel), or to be added up, numel.
enum class LevelForm { TwoBits, Bytes };
inline std::int64_t code_bytes(const LevelTable& table, LevelForm form) {
  return form == LevelForm::Bytes ? table.numel()
                                  : kernels::packed_bytes(table.numel());
}

// Of each tensor (fp32): the sum of |u|; the largest |u|, infinite where one is
// not finite.
void sum_of_sizes(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& sum);
void largest(const at::Tensor& u, LevelTable& table, const at::Tensor& most);

// Sent is what is above its tensor's cut (0 or more, strictly). codes: uint8,
// code_bytes(). sums (fp32, 2 a tensor): the sum of |u| that is sent, and the
// number of those; without any 0, NaN where the cut is not finite.
void encode_above(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& cuts,
    LevelForm form,
    const at::Tensor& codes,
    const at::Tensor& sums);

// Four random numbers a block of the stream of random_key(seed, Rounding),
// `step` and `stream`.
struct Chance {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t stream = 0;
};
// Sent with the probability |u| / level (to 2^-24).
void encode_by_chance(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& levels,
    const Chance& chance,
    LevelForm form,
    const at::Tensor& codes);

// u becomes what was not sent.
void subtract_levels(
    const at::Tensor& u,
    LevelTable& table,
    const at::Tensor& levels,
    LevelForm form,
    const at::Tensor& codes);

// Of n workers' records (`in`, uint8, one after another, in rank order) the
// mean.
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
