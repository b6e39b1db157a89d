// Builds the jobs of kernels/codes/quantize.h, for GPU and CPU, from checked arguments. This is a
// header of its own so that tests/kernels fills the jobs exactly as the ops do.
#pragma once

#include <bit>

#include "base/error.h"
#include "kernels/codes/quantize.h"
#include "ops/quantize.h"

namespace abtrain::ops {

// Base-2 logarithm of a block's size.
inline int log_of(std::int64_t block) {
  ABT_ASSERT(
      block >= 1 && block <= (std::int64_t{1} << 30) &&
          std::has_single_bit(static_cast<std::uint64_t>(block)),
      "expected a block size that is a power of two, up to 2^30, got {}", block);
  return std::countr_zero(static_cast<std::uint64_t>(block));
}

inline kernels::BlockCoding block_coding(
    std::int64_t numel, const at::Tensor& ranges, const Coding& c) {
  return {
      .numel = numel,
      .blocks = ranges.numel(),
      .log_size = log_of(c.block),
      .rotate = c.rotate,
      .lanes = c.lanes,
      .limit = c.limit,
      .offset = c.offset,
      .ranges = ranges.const_data_ptr<float>(),
      .signs = kernels::random_stream(c.seed, kernels::RandomPurpose::Signs, c.step, c.signs),
      .rounding =
          kernels::random_stream(c.seed, kernels::RandomPurpose::Rounding, c.step, c.rounding),
      .first = c.first,
  };
}

inline kernels::Quantize quantize_job(
    const at::Tensor& u, const at::Tensor& ranges, const Coding& coding, bool residual,
    const at::Tensor& codes) {
  return {
      .coding = block_coding(u.numel(), ranges, coding),
      .u = u.mutable_data_ptr<float>(),
      .codes = codes.mutable_data_ptr(),
      .residual = residual,
  };
}

inline kernels::Dequantize dequantize_job(
    const Sums& sums, const at::Tensor& ranges, const Coding& coding, const at::Tensor& out) {
  return {
      .coding = block_coding(out.numel(), ranges, coding),
      .codes = sums.codes.const_data_ptr(),
      .zero = sums.zero,
      .members = sums.members,
      .shards = sums.shards,
      .out = out.mutable_data_ptr<float>(),
  };
}

}  // namespace abtrain::ops
