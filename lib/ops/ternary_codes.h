// Codes elements of flat fp32 buffers as -a, 0 or +a with one level a per tensor: for the reducers
// twobit (MXNet's 2-bit compression), hylo (its linear layers), threshold and ternary.
// kernels/codes/ternary_codes.h has the codes.
//
// Either all workers know the levels: sums of codes are then integers, and each worker can serve a
// share of the blocks. Or each worker has its own levels and sends them with its codes in a record.
//
// In two-bit codes that are not packed, an element that is not finite makes its mean NaN. In the
// other forms its tensor's level must show it, as a level computed from the elements does, and so
// must the cut or chance: a NaN is above no cut.
//
// Wires are flat, codes uint8, sums int32. Levels and cuts are fp32, one per tensor, on u's device.
// CPU and GPU give the same bits, sums included. On CUDA the kernels are queued on this thread's
// current stream, and nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>

#include "kernels/codes/ternary_codes.h"
#include "ops/code_blocks.h"

namespace abtrain::ops {

using kernels::CodeForm;
using kernels::CodeWire;

// More workers are refused: a sum that marks a non-finite element is recognized by its magnitude.
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

// The tensors of a buffer and the layout of their codes. Each tensor's codes fill whole groups of
// 32. If packed, there is one code per element instead, and a byte may hold codes of several
// tensors.
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
  // The table as the device reads it. If packed, a block is kernels::kBlock elements, whichever
  // tensors they belong to.
  kernels::TernaryBlocks on(c10::Device device);

 private:
  CodeBlocks blocks_;
  DeviceTable<kernels::CodeBlock> windows_;  // if packed
};

// The cuts that send magnitudes of at least these thresholds (0 or more).
at::Tensor cuts_at(const at::Tensor& thresholds);

struct TernaryRule {
  // An element is sent if its magnitude is above its tensor's cut (0 or more). Without cuts, which
  // requires a packed table, it is sent with probability |u| / level (to 2^-24), by one random word
  // per element.
  at::Tensor cuts = {};
  kernels::RandomStream random = {};
  bool keeps_rest = false;  // whether u becomes what was not sent
};
void encode_ternary(
    const at::Tensor& u, TernaryTable& table, const at::Tensor& levels, const TernaryRule& rule,
    CodeForm form, const at::Tensor& wire);

// Sums n workers' two-bit codes of `part`, in which each tensor fills groups of 32.
void pack_sums(
    const at::Tensor& in, int workers, CodeBlocks& blocks, CodeBlocks::Range part,
    const at::Tensor& wire);
// The mean (fp32) over workers that share the levels. `in` has their two-bit codes (one worker
// after another), all their sums (from pack_sums), or the sums of their byte codes (at most 127
// workers).
void average_codes(
    const at::Tensor& in, CodeWire wire, int workers, TernaryTable& table, const at::Tensor& levels,
    const at::Tensor& estimate);
// The mean of n workers' records (uint8, one after another), added in rank order.
void average_records(
    const at::Tensor& in, int workers, TernaryTable& table, const at::Tensor& estimate);

}  // namespace abtrain::ops
