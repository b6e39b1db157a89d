// Codes elements as -a, 0 or +a with one level a per tensor, for the reducers
// threshold and ternary. The tensors follow one another without gaps from the
// start of a flat fp32 buffer; kernels/codes/level_codes.h gives the layout of
// codes.
//
// ops/twobit_codes.h has the same codes with a threshold that all workers know:
// there, sums of codes are integers, and a worker can serve a share of the
// blocks, for which each tensor is padded to groups of 32 codes. Here each
// worker has levels of its own, which travel with the codes; the mean adds fp32
// values in rank order, and codes of neighboring tensors share bytes, which
// keeps a record at ceil(d / 4) + 4 T bytes for d elements in T tensors, many of
// them small.
//
// CPU and GPU give the same bits, sums included. On CUDA the kernels are queued
// on this thread's current stream, and nothing is read back. Levels and cuts
// are fp32, one per tensor, on u's device. An element that is not finite makes
// its tensor's level, and so the mean, NaN or infinite, provided that the cut
// follows from the element: a NaN is above no cut.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/codes/level_codes.h"
#include "ops/code_blocks.h"

namespace abtrain::ops {

// Size of a worker's record: its levels, then two-bit codes.
inline std::int64_t record_bytes(std::int64_t tensors, std::int64_t numel) {
  return 4 * tensors + kernels::packed_bytes(numel);
}

class LevelTable {
 public:
  LevelTable() = default;
  // Element count of each tensor, at least 1.
  explicit LevelTable(const std::vector<std::int64_t>& numels);

  std::int64_t tensors() const {
    return blocks_.tensors();
  }
  std::int64_t numel() const {
    return blocks_.end();
  }
  CodeBlocks& blocks() {
    return blocks_;
  }
  std::int64_t record_bytes() const {
    return ops::record_bytes(tensors(), numel());
  }
  // The windows (kernels/codes/level_codes.h), of which there are windows(), as
  // the device reads them.
  const kernels::CodeBlock* windows_on(c10::Device device) {
    return windows_.on(device);
  }
  std::int64_t windows() const {
    return std::ssize(windows_.host);
  }

 private:
  CodeBlocks blocks_;
  DeviceTable<kernels::CodeBlock> windows_;
};

using kernels::CodeForm;

// Bytes of the codes: two-bit codes are gathered, byte codes are summed.
inline std::int64_t code_bytes(const LevelTable& table, CodeForm form) {
  return form == CodeForm::Bytes ? table.numel() : kernels::packed_bytes(table.numel());
}

// Sends the elements whose magnitude is strictly above their tensor's cut (0 or
// more). If levels are given, u keeps what was not sent.
void encode_above(
    const at::Tensor& u, LevelTable& table, const at::Tensor& cuts, CodeForm form,
    const at::Tensor& codes, const at::Tensor& levels = {});

// Selects a random stream: (seed, Rounding, step, stream) of kernels/random.h.
// Each of its blocks has four random numbers.
struct Chance {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t stream = 0;
};
// Sends an element with probability |u| / level (to 2^-24).
void encode_by_chance(
    const at::Tensor& u, LevelTable& table, const at::Tensor& levels, const Chance& chance,
    CodeForm form, const at::Tensor& codes);

// The mean of n workers' records (`in`, uint8, one after another in rank
// order).
void average_levels(
    const at::Tensor& in, int workers, LevelTable& table, const at::Tensor& estimate);
// The mean from the sums of at most 127 workers' bytes; all share the levels.
void average_byte_levels(
    const at::Tensor& sums, int workers, LevelTable& table, const at::Tensor& levels,
    const at::Tensor& estimate);

}  // namespace abtrain::ops
