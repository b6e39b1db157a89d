// Builds the arguments of the kernels of quantize.h, and of their CPU forms,
// from checked arguments. It has its own header so that tests/kernels fills
// them exactly as the ops do.
#pragma once

#include "base/random.h"
#include "kernels/codes/quantize.h"
#include "ops/hadamard.h"
#include "ops/quantize.h"

namespace abtrain::ops {

inline kernels::BlockCoding block_coding(
    std::int64_t numel, const at::Tensor& ranges, const Coding& c) {
  kernels::BlockCoding job;
  job.numel = numel;
  job.blocks = ranges.numel();
  job.log_size = exact_log2(c.block, "quantize: block");
  job.rotate = c.rotate;
  job.lanes = c.lanes;
  job.limit = c.limit;
  job.offset = c.offset;
  job.ranges = ranges.const_data_ptr<float>();
  const auto signs = random_key(c.seed, RandomPurpose::Signs);
  const auto rounding = random_key(c.seed, RandomPurpose::Rounding);
  for (std::size_t i = 0; i < 2; ++i) {
    job.sign_key[i] = signs[i];
    job.rounding_key[i] = rounding[i];
  }
  job.step = c.step;
  job.sign_stream = c.signs;
  job.rounding_stream = c.rounding;
  job.first = c.first;
  return job;
}

inline kernels::Quantize quantize_job(
    const at::Tensor& u, const at::Tensor& ranges, const Coding& coding, bool residual,
    const at::Tensor& codes) {
  kernels::Quantize job;
  job.coding = block_coding(u.numel(), ranges, coding);
  job.u = u.mutable_data_ptr<float>();
  job.codes = codes.mutable_data_ptr();
  job.residual = residual;
  return job;
}

inline kernels::Dequantize dequantize_job(
    const Sums& sums, const at::Tensor& ranges, const Coding& coding, const at::Tensor& out) {
  kernels::Dequantize job;
  job.coding = block_coding(out.numel(), ranges, coding);
  job.codes = sums.codes.const_data_ptr();
  job.zero = sums.zero;
  job.members = sums.members;
  job.shards = sums.shards;
  job.out = out.mutable_data_ptr<float>();
  return job;
}

}  // namespace abtrain::ops
