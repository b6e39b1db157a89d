// The summing parts of quantize.h: norms of blocks and sums of 4-bit codes.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/cpu/code_blocks.h"
#include "ops/cpu/quantize.h"

namespace abtrain::ops {

namespace {

// Lane i sums elements i, i + 128, ...; then the lanes are added by halves.
ABT_INLINE float sum_of_squares(const float* x, std::int64_t present, std::int64_t size) {
  constexpr std::int64_t kLanes = kernels::kUnit;
  float sum[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= present; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      sum[lane] = ::fmaf(x[i + lane], x[i + lane], sum[lane]);
    }
  }
  for (std::int64_t lane = 0; i + lane < present; ++lane) {
    sum[lane] = ::fmaf(x[i + lane], x[i + lane], sum[lane]);
  }
  return add_by_halves(sum, static_cast<int>(std::min(size, kLanes)));
}

// Adds bytes of two codes each to the two arrays of sums.
ABT_INLINE void add_codes(const std::uint8_t* in, std::int64_t count, std::uint16_t (*sums)[512]) {
  for (std::int64_t i = 0; i < count; ++i) {
    sums[0][i] = static_cast<std::uint16_t>(sums[0][i] + (in[i] & 15));
    sums[1][i] = static_cast<std::uint16_t>(sums[1][i] + (in[i] >> 4));
  }
}

ABT_INLINE std::uint32_t clamp_codes(
    const std::uint16_t (*sums)[512], std::int64_t count, int offset, std::uint8_t* out) {
  std::uint32_t clamped = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const int low = int{sums[0][i]} - offset;
    const int high = int{sums[1][i]} - offset;
    const int low_within = std::clamp(low, -7, 7);
    const int high_within = std::clamp(high, -7, 7);
    clamped += static_cast<std::uint32_t>(low != low_within) +
               static_cast<std::uint32_t>(high != high_within);
    out[i] = static_cast<std::uint8_t>((low_within + 8) | (high_within + 8) << 4);
  }
  return clamped;
}

// Works tile by tile. A sum is at most 4,096 * 15, which fits 16 bits.
ABT_INLINE std::uint32_t sum_shards(
    const std::uint8_t* in, std::int64_t bytes, int members, std::uint8_t* out) {
  std::uint32_t clamped = 0;
  for (std::int64_t at = 0; at < bytes; at += 512) {
    const std::int64_t count = std::min<std::int64_t>(512, bytes - at);
    std::uint16_t sums[2][512] = {};
    for (int member = 0; member < members; ++member) {
      add_codes(in + member * bytes + at, count, sums);
    }
    clamped += clamp_codes(sums, count, 8 * members, out + at);
  }
  return clamped;
}

}  // namespace

void block_norms_cpu(const at::Tensor& u, int log_size, const at::Tensor& norms, Simd simd) {
  const auto* x = u.const_data_ptr<float>();
  auto* out = norms.mutable_data_ptr<float>();
  const std::int64_t size = std::int64_t{1} << log_size;
  at::parallel_for(
      0, norms.numel(), std::max<std::int64_t>(1, 65536 / size),
      [&](std::int64_t begin, std::int64_t end) {
        compiled_for(simd, [&]() ABT_INLINED {
          for (std::int64_t b = begin; b < end; ++b) {
            const std::int64_t present = std::clamp<std::int64_t>(u.numel() - b * size, 0, size);
            const float norm = std::sqrt(sum_of_squares(x + b * size, present, size));
            out[b] = norm == norm ? norm : std::numeric_limits<float>::infinity();
          }
        });
      });
}

}  // namespace abtrain::ops

namespace abtrain::kernels {

void work_on_host(const SumCodes& job) {
  std::uint32_t tail[kTailBytes / 4] = {};
  ops::compiled_for(ops::best_simd(), [&]() ABT_INLINED {
    tail[0] = ops::sum_shards(job.in, job.bytes, job.members, job.out);
  });
  std::memcpy(job.out + job.bytes, tail, sizeof(tail));
}

}  // namespace abtrain::kernels
