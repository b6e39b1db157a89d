// Codes elements of flat fp32 buffers as -a, 0 or +a with one level a per tensor. The gradient
// reducers twobit (MXNet's 2-bit compression), hylo (for linear layers), threshold and ternary use
// it. kernels/codes/ternary_codes.h describes the codes.
//
// Either all workers share the levels: codes are then summed as integers, and each worker can do
// this for a share of the blocks. Or each worker has its own levels and sends them with its codes
// in a record.
//
// In two-bit codes that are not packed, an element that is not finite makes its mean NaN. Packed
// codes and byte codes do not show it: a NaN, for example, is above no cut and is not sent. With
// these codes, a tensor with such an element must have a level that is not finite, which makes all
// of its means non-finite. A level computed from the elements meets this condition by itself.
//
// Wires (what workers send) are flat: codes uint8, sums int32. Levels and cuts are fp32, one per
// tensor, on u's device. CPU and GPU results are bit-identical, sums included. On CUDA the kernels
// are queued on this thread's current stream, and nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>

#include "kernels/codes/ternary_codes.h"
#include "ops/code_blocks.h"

namespace abtrain::ops {

using kernels::CodeForm;
using kernels::CodeWire;

// The largest number of workers. Each non-finite element adds 2^18 to its sum, more than any sum of
// finite elements; all sums must fit 32 bits.
inline constexpr int kMaxCodeWorkers = 4096;

inline std::int64_t code_bytes(std::int64_t codes, CodeForm form) {
  return form == CodeForm::Bytes ? codes : kernels::packed_bytes(codes);
}
// Bytes of a part's codes; each tensor fills whole groups of 32.
inline std::int64_t code_bytes(const CodeBlocks& blocks, CodeBlocks::Range part, CodeForm form) {
  return code_bytes(kernels::kGroup * blocks.groups(part), form);
}
// Bits per sum of n codes: ceil(log2(2 n + 1)).
inline int sum_bits(int workers) {
  return static_cast<int>(std::bit_width(2u * static_cast<unsigned>(workers)));
}
// Number of words in a part's sums.
inline std::int64_t sum_words(const CodeBlocks& blocks, CodeBlocks::Range part, int workers) {
  return sum_bits(workers) * blocks.groups(part);
}
// Bytes of a worker's record: its levels, then two-bit codes.
inline std::int64_t record_bytes(std::int64_t tensors, std::int64_t codes) {
  return 4 * tensors + kernels::packed_bytes(codes);
}

// The tensors of a buffer and the layout of their codes. Unless packed, each tensor's codes fill
// whole groups of 32. If packed, there is exactly one code per element, and a byte may hold codes
// of several tensors.
class TernaryTable {
 public:
  TernaryTable() = default;
  // If `packed`, tensors must follow one another without gaps from element 0 on.
  explicit TernaryTable(CodeBlocks tensors, bool packed = false);

  CodeBlocks& blocks() {
    return blocks_;
  }
  const CodeBlocks& blocks() const {
    return blocks_;
  }
  // The table in memory that the device can read. If packed, a block consists of kernels::kBlock
  // adjacent elements, whichever tensors they belong to.
  kernels::TernaryBlocks on(c10::Device device);

 private:
  CodeBlocks blocks_;
  DeviceTable<kernels::CodeBlock> windows_;  // the blocks if packed
};

// Converts thresholds (0 or more) to cuts: a magnitude is above its cut exactly if it is at least
// the threshold.
at::Tensor cuts_at(const at::Tensor& thresholds);

struct TernaryRule {
  // An element is sent if its magnitude is above its tensor's cut (0 or more). Without cuts, which
  // requires a packed table, it is sent with probability |u| / level (to 2^-24), by one random word
  // per element.
  at::Tensor cuts = {};
  kernels::RandomStream random = {};
  bool keeps_rest = false;  // leave in u what was not sent
};
void encode_ternary(
    const at::Tensor& u, TernaryTable& table, const at::Tensor& levels, const TernaryRule& rule,
    CodeForm form, const at::Tensor& wire);

// Sums n workers' two-bit codes of the blocks `part`. The codes are not packed: each tensor fills
// whole groups of 32.
void pack_sums(
    const at::Tensor& in, int workers, CodeBlocks& blocks, CodeBlocks::Range part,
    const at::Tensor& wire);
// Writes the mean (fp32) over workers that share the levels to `estimate`. `wire` tells what `in`
// holds. Codes: the two-bit codes, one worker after another. Planes: the sums of two-bit codes for
// all blocks, from pack_sums(). Bytes: the sums of byte codes (at most 127 workers).
void average_codes(
    const at::Tensor& in, CodeWire wire, int workers, TernaryTable& table, const at::Tensor& levels,
    const at::Tensor& estimate);
// Writes the mean of n workers' records (uint8, one after another) to `estimate`. Adds in rank
// order.
void average_records(
    const at::Tensor& in, int workers, TernaryTable& table, const at::Tensor& estimate);

}  // namespace abtrain::ops
