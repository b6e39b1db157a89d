// Implements the sums that kernels/codes/quantize.h declares, on the host: norms of blocks and sums
// of 4-bit codes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/blocks/hadamard.h"
#include "kernels/codes/quantize.h"
#include "ops/cpu/code_blocks.h"

namespace abtrain::ops {

namespace {

// Adds the low code of each byte to sums[0] and the high code to sums[1].
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

}  // namespace abtrain::ops

namespace abtrain::kernels {

void work_on_host(const BlockNorms& job) {
  constexpr int kSumLanes = static_cast<int>(kUnit);
  const int tiles_log = std::max(0, job.log_size - kTileLog);
  const std::int64_t size = std::int64_t{1} << (job.log_size - tiles_log);
  const auto norm_of = [](float squares) ABT_INLINED {
    const float norm = std::sqrt(squares);
    return norm == norm ? norm : std::numeric_limits<float>::infinity();
  };
  ops::for_blocks(
      job.blocks << tiles_log,
      [=](std::int64_t t) ABT_INLINED {
        const std::int64_t present = std::clamp<std::int64_t>(job.numel - t * size, 0, size);
        const float* const tile = job.x + t * size;
        const int used = static_cast<int>(std::min<std::int64_t>(size, kSumLanes));
        const float squares = ops::dot_in_lanes<kSumLanes, float>(tile, tile, present, used);
        (tiles_log > 0 ? job.tiles : job.norms)[t] = tiles_log > 0 ? squares : norm_of(squares);
      },
      std::max<std::int64_t>(1, 65536 / size));
  for (std::int64_t b = 0; tiles_log > 0 && b < job.blocks; ++b) {
    job.norms[b] = norm_of(ops::add_parts(job.tiles, 1, b << tiles_log, (b + 1) << tiles_log));
  }
}

void work_on_host(const SumCodes& job) {
  std::uint32_t tail[kTailBytes / 4] = {};
  ops::vectorized(
      [&]() ABT_INLINED { tail[0] = ops::sum_shards(job.in, job.bytes, job.members, job.out); });
  std::memcpy(job.out + job.bytes, tail, sizeof(tail));
}

}  // namespace abtrain::kernels
