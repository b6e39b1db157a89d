// Codes -t, 0, +t of blocks of elements, with one threshold t per tensor: the
// sums from which t is computed, encoding, and sums over workers
// (ops/twobit_codes.h has the meaning): the bodies (team.h) and their launchers.
// The launchers take device pointers, are asynchronous on `stream` (a
// cudaStream_t) and return a cudaError_t as an int.
//
// kernels/codes/ternary_codes.h has the codes. A sum k in -n .. n over n
// workers is stored as k + n, or as 2 n + 1 if a value is not finite. The sums
// of a block are stored as bit planes: one word per group for bit 0, then those
// for bit 1, and so on. Blocks follow one another by their groups.
#pragma once

#include <cstdint>

#include "kernels/codes/ternary_codes.h"
#include "kernels/team.h"

namespace abtrain::kernels {

struct EncodeThreshold {
  const CodeBlock* blocks;
  std::int64_t count;
  float* u;                 // becomes what was not sent
  const float* thresholds;  // one per tensor
  std::uint8_t* wire;
  CodeForm form;
};
ABT_LAUNCHER int encode_threshold(const EncodeThreshold& job, void* stream);

// The sums of the workers' two-bit codes, in `bits` bits per element.
struct PackSums {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::uint8_t* in;
  std::int64_t stride;
  int workers;
  std::uint32_t* wire;
  int bits;
};
ABT_LAUNCHER int pack_sums(const PackSums& job, void* stream);

// What a mean is computed from: the workers' two-bit codes, which follow one
// another; their sums as bit planes; or sums of byte codes.
enum class CodeWire { Codes, Planes, Bytes };

struct AverageCodes {
  const CodeBlock* blocks;
  std::int64_t count;
  const void* in;
  CodeWire wire;
  std::int64_t stride;  // of codes: bytes per worker
  int bits;             // of planes: bits per sum
  int workers;
  const float* thresholds;
  float* estimate;
};
ABT_LAUNCHER int average_codes(const AverageCodes& job, void* stream);

// Added to a sum for each value that is not finite; larger than any other sum.
constexpr int kNotFinite = 1 << 20;

namespace twobit_codes {

template <class Team>
using Sums = std::int32_t[Team::kUnits][Team::kUnit];

// The codes of a block, those of its last group's padding included.
ABT_INLINE std::int64_t padded(const CodeBlock& block) {
  return kGroup * groups_of(block);
}

// The sums of the workers' codes of a block, plus `workers`; above 2 workers
// for a value that is not finite.
template <class Team>
ABT_INLINE void add_codes(
    const Team& team, const CodeBlock& block, const std::uint8_t* in, std::int64_t stride,
    int workers, Sums<Team>& sums) {
  for (int w = 0; w < workers; ++w) {
    team.for_units(block, [&](int unit, int own) ABT_INLINED {
      std::uint32_t codes[Team::kUnit];
      team.two_bits(in + w * stride, unit, padded(block), codes);
      ABT_UNROLL
      for (int k = 0; k < Team::kUnit; ++k) {
        const auto not_finite = static_cast<std::int32_t>(codes[k] & ~(codes[k] >> 1) & 1);
        sums[own][k] += sign_of(codes[k]) + 1 + not_finite * kNotFinite;
      }
    });
  }
}

}  // namespace twobit_codes

template <class Team>
ABT_INLINE void work(Team& team, const EncodeThreshold& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  const std::int64_t group = block.group - job.blocks[0].group;
  const float t = job.thresholds[block.slot];
  typename Team::Values x(job.u + block.begin, block.count);
  team.for_units(block, [&](int unit, int own) ABT_INLINED {
    std::uint32_t codes[Team::kUnit];
    ABT_UNROLL
    for (int k = 0; k < Team::kUnit; ++k) {
      const float value = x[own][k];
      const std::uint32_t finite = all_ones(::fabsf(value) <= kLargestFloat);
      const std::uint32_t up = all_ones(value >= t) & finite;
      const std::uint32_t down = all_ones(value <= -t) & ~up & finite;
      codes[k] = (up & 3) | (down & 2) | (~finite & 1);
      x[own][k] = value - float_of((up & bits_of(t)) | (down & bits_of(-t)));
    }
    if (job.form == CodeForm::Bytes) {
      team.store_bytes(
          job.wire + kGroup * group, unit, twobit_codes::padded(block),
          [&](int k) ABT_INLINED { return byte_code(codes[k]); });
    } else {
      team.store_two_bits(
          job.wire + packed_bytes(kGroup) * group, unit, twobit_codes::padded(block), codes);
    }
  });
  x.store();
}

template <class Team>
ABT_INLINE void work(Team& team, const PackSums& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  const std::int64_t group = block.group - job.blocks[0].group;
  twobit_codes::Sums<Team> sums = {};
  twobit_codes::add_codes(
      team, block, job.in + packed_bytes(kGroup) * group, job.stride, job.workers, sums);
  const int most = 2 * job.workers + 1;
  team.for_units(block, [&](int unit, int own) ABT_INLINED {
    for (int p = 0; p < job.bits; ++p) {
      std::uint32_t plane = 0;
      ABT_UNROLL
      for (int k = 0; k < Team::kUnit; ++k) {
        const int sum = sums[own][k] < most ? sums[own][k] : most;
        plane |= (static_cast<std::uint32_t>(sum) >> p & 1) << k;
      }
      team.store_bits(job.wire + job.bits * group + p * groups, unit, plane);
    }
  });
}

template <class Team>
ABT_INLINE void work(Team& team, const AverageCodes& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  const std::int64_t group = block.group - job.blocks[0].group;
  const auto* const in = static_cast<const std::uint8_t*>(job.in);
  const float factor = job.thresholds[block.slot] / static_cast<float>(job.workers);
  const auto store_means = [&](int unit, const auto& sums) ABT_INLINED {
    team.store(job.estimate + block.begin, unit, block.count, [&](int k) ABT_INLINED {
      const std::int32_t sum = sums[k];
      const float mean = factor * static_cast<float>(sum - job.workers);
      const std::uint32_t finite = all_ones(sum <= 2 * job.workers);
      return float_of((bits_of(mean) & finite) | (kNan & ~finite));
    });
  };
  if (job.wire == CodeWire::Bytes) {
    team.for_units(block, [&](int unit, int) ABT_INLINED {
      std::uint8_t sums[Team::kUnit];
      team.bytes(in + kGroup * group, unit, twobit_codes::padded(block), sums);
      store_means(unit, sums);
    });
    return;
  }
  twobit_codes::Sums<Team> sums = {};
  if (job.wire == CodeWire::Codes) {
    twobit_codes::add_codes(
        team, block, in + packed_bytes(kGroup) * group, job.stride, job.workers, sums);
  } else {
    const auto* const planes = static_cast<const std::uint32_t*>(job.in) + job.bits * group;
    for (int p = 0; p < job.bits; ++p) {
      team.for_units(block, [&](int unit, int own) ABT_INLINED {
        const std::uint32_t plane = team.bits(planes + p * groups, unit);
        ABT_UNROLL
        for (int k = 0; k < Team::kUnit; ++k) {
          sums[own][k] |= static_cast<std::int32_t>((plane >> k & 1) << p);
        }
      });
    }
  }
  team.for_units(block, [&](int unit, int own) ABT_INLINED { store_means(unit, sums[own]); });
}

}  // namespace abtrain::kernels
