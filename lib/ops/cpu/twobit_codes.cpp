#include <array>
#include <cstring>
#include <limits>

#include "ops/cpu/code_blocks.h"
#include "ops/cpu/twobit_codes.h"

namespace abtrain::ops {

namespace {

using kernels::CodeWire;
using kernels::kNotFinite;

// Where the sixteen codes of a word begin: a table, so that the compiler
// vectorizes the shifts.
constexpr unsigned kSixteen = 16;
constexpr std::array<int, kSixteen> kShift = [] {
  std::array<int, kSixteen> shift{};
  for (unsigned k = 0; k < kSixteen; ++k) {
    shift[k] = kernels::shift_of(static_cast<int>(k));
  }
  return shift;
}();

ABT_INLINE void work(const kernels::EncodeThreshold& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  const std::int64_t group = block.group - job.blocks[0].group;
  const std::int64_t numel = groups_of(block) * kGroup;
  const float t = job.thresholds[block.slot];
  float scratch[kBlock];
  float* const u = job.u + block.begin;
  float* const x = whole_block(u, block.count, scratch);
  const auto plus = std::bit_cast<std::uint32_t>(t);
  std::uint32_t codes[kBlock];
  for (std::int64_t i = 0; i < kBlock; ++i) {
    // Branchless, so that the compiler vectorizes it.
    const float value = x[i];
    const std::uint32_t finite =
        all_ones(std::fabs(value) <= std::numeric_limits<float>::max());
    const std::uint32_t up = all_ones(value >= t) & finite;
    const std::uint32_t down = all_ones(value <= -t) & ~up & finite;
    codes[i] = (up & 3) | (down & 2) | (~finite & 1);
    x[i] = value -
           std::bit_cast<float>((up & plus) | (down & (plus | 0x80000000)));
  }
  if (job.form == kernels::CodeForm::Bytes) {
    std::uint8_t* const to = job.wire + kGroup * group;
    for (std::int64_t i = 0; i < numel; ++i) {
      to[i] = kernels::byte_code(codes[i]);
    }
  } else {
    std::uint8_t* const to = job.wire + 8 * group;
    for (std::int64_t i = 0; i < numel; i += kSixteen) {
      std::uint32_t word = 0;
#pragma GCC unroll 1
      for (unsigned k = 0; k < kSixteen; ++k) {
        word |= codes[i + k] << kShift[k];
      }
      std::memcpy(to + i / 4, &word, sizeof(word));
    }
  }
  if (x != u) {
    std::copy(x, x + block.count, u);
  }
}

// The sums of a block's codes over the workers, plus `workers`; above 2 workers
// for an element that is not finite.
ABT_INLINE void add_codes(
    const std::uint8_t* in,
    std::int64_t stride,
    int workers,
    std::int64_t numel,
    std::int32_t* sums) {
  std::fill(sums, sums + numel, workers);
  for (int w = 0; w < workers; ++w) {
    const std::uint8_t* const from = in + w * stride;
    for (std::int64_t i = 0; i < numel; i += kSixteen) {
      std::uint32_t word;
      std::memcpy(&word, from + i / 4, sizeof(word));
#pragma GCC unroll 1
      for (unsigned k = 0; k < kSixteen; ++k) {
        const std::uint32_t code = word >> kShift[k] & 3;
        const auto not_finite =
            static_cast<std::int32_t>(code & ~(code >> 1) & 1);
        sums[i + k] += kernels::sign_of(code) + not_finite * kNotFinite;
      }
    }
  }
}

ABT_INLINE void work(const kernels::PackSums& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  const std::int64_t group = block.group - job.blocks[0].group;
  std::int32_t sums[kBlock];
  add_codes(job.in + 8 * group, job.stride, job.workers, groups * kGroup, sums);
  for (std::int64_t i = 0; i < groups * kGroup; ++i) {
    sums[i] = std::min(sums[i], 2 * job.workers + 1);
  }
  for (int p = 0; p < job.bits; ++p) {
    pack_bits(
        groups,
        job.wire + job.bits * group + p * groups,
        [&sums, p](std::int64_t i) {
          return static_cast<std::uint32_t>(sums[i]) >> p & 1;
        });
  }
}

ABT_INLINE void unpack_planes(
    const std::uint8_t* planes,
    int bits,
    std::int64_t groups,
    std::int32_t* sums) {
  std::fill(sums, sums + groups * kGroup, 0);
  for (int p = 0; p < bits; ++p) {
    for (std::int64_t g = 0; g < groups; ++g) {
      std::uint32_t word;
      std::memcpy(&word, planes + 4 * (p * groups + g), sizeof(word));
      for (unsigned k = 0; k < kGroup; ++k) {
        sums[g * kGroup + k] |= static_cast<std::int32_t>((word >> k & 1) << p);
      }
    }
  }
}

// factor * sum, or NaN if not finite.
ABT_INLINE float mean_of(float factor, std::int32_t sum, bool finite) {
  const auto mean =
      std::bit_cast<std::uint32_t>(factor * static_cast<float>(sum));
  const std::uint32_t mask = all_ones(finite);
  return std::bit_cast<float>((mean & mask) | (0x7FC00000u & ~mask));
}

ABT_INLINE void work(const kernels::AverageCodes& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  const std::int64_t group = block.group - job.blocks[0].group;
  const auto* const in = static_cast<const std::uint8_t*>(job.in);
  const float factor =
      job.thresholds[block.slot] / static_cast<float>(job.workers);
  float* const estimate = job.estimate + block.begin;
  std::int32_t sums[kBlock];
  if (job.wire == CodeWire::Codes) {
    add_codes(in + 8 * group, job.stride, job.workers, groups * kGroup, sums);
  } else if (job.wire == CodeWire::Planes) {
    unpack_planes(in + 4 * job.bits * group, job.bits, groups, sums);
  } else {
    std::copy_n(in + kGroup * group, block.count, sums);
  }
  for (std::int64_t i = 0; i < block.count; ++i) {
    estimate[i] =
        mean_of(factor, sums[i] - job.workers, sums[i] <= 2 * job.workers);
  }
}

}  // namespace

void encode_threshold_cpu(const kernels::EncodeThreshold& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
}
void average_codes_cpu(const kernels::AverageCodes& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
}
void pack_sums_cpu(const kernels::PackSums& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
}

}  // namespace abtrain::ops
