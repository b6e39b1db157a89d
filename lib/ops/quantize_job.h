// Builds the arguments of the kernels of quantize.h, and of their CPU forms,
// from checked arguments. It has its own header so that tests/kernels fills
// them exactly as the ops do.
#pragma once

#include "kernels/codes/quantize.h"
#include "ops/hadamard.h"
#include "ops/quantize.h"

namespace abtrain::ops {

inline kernels::BlockCoding block_coding(
    std::int64_t numel, const at::Tensor& ranges, const Coding& c) {
  return {
      .numel = numel,
      .blocks = ranges.numel(),
      .log_size = exact_log2(c.block, "quantize: block"),
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
