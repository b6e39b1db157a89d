// Encodes elements as -a, 0 or +a, with one level a per tensor, and computes sums and means of
// workers' codes (see ops/ternary_codes.h). This header has the kernels' bodies (team.h) and
// launchers, which take device pointers and a cudaStream_t, and return a cudaError_t.
//
// A two-bit code is 3 for +a, 2 for -a and 0 for 0. If each block lies within one tensor, the code
// 1 marks a value that is not finite. Packed codes, with blocks that cross tensors, have no such
// mark. A byte holds four two-bit codes, the first in its two high bits, as in MXNet. A byte code
// is 0 for -a, 1 for 0 or a value that is not finite, and 2 for +a, so that workers' codes can be
// added up.
//
// The sum k of n workers' codes of an element, taken as -1, 0 or 1, is stored as k + n; 2 n + 1
// means that a value is not finite. The sums of a block are stored as bit planes: bit 0 of all its
// sums, one 32-bit word per group of 32; then bit 1 of all its sums, and so on. The planes of the
// blocks follow one another.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/random.h"
#include "kernels/team.h"

namespace abtrain::kernels {

enum class CodeForm { TwoBits, Bytes };

// The largest number of workers for which the sum of their byte codes fits a byte.
constexpr int kMaxByteWorkers = 127;

// The fields that all jobs share. A block's first code has the index 32 * (block.group -
// blocks[0].group) among all codes. Unless packed, a block lies within the tensor with the index
// block.slot. If packed, it may span several tensors, without gaps; `tensors` then lists blocks of
// one tensor each, and block.slot is the index there of the block that contains the first element.
struct TernaryBlocks {
  const CodeBlock* blocks;
  std::int64_t count;
  const CodeBlock* tensors;  // null: each block lies within one tensor
  std::int64_t codes;        // number of codes of all blocks; the last group may have fewer than 32
};

struct EncodeTernary : TernaryBlocks {
  const float* u;
  float* rest;  // becomes u minus what was sent; may be u, or null
  const float* levels;
  const float* cuts;    // an element is sent if |u| > cut; null: with probability |u| / level
  RandomStream random;  // one word per element
  CodeForm form;
  std::uint8_t* wire;
};
ABT_LAUNCHER int encode_ternary(const EncodeTernary& job, void* stream);

// Sums the workers' two-bit codes, which `in` holds one worker after another, to bit planes with
// `bits` bits per sum.
struct PackSums : TernaryBlocks {
  const std::uint8_t* in;
  int workers;
  int bits;
  std::uint32_t* wire;
};
ABT_LAUNCHER int pack_sums(const PackSums& job, void* stream);

// The input of a mean. Codes: the workers' two-bit codes, one worker after another. Planes: the
// sums of two-bit codes as bit planes. Bytes: the sums of byte codes.
enum class CodeWire { Codes, Planes, Bytes };

struct AverageCodes : TernaryBlocks {
  const void* in;
  CodeWire wire;
  int workers;
  int bits;  // for Planes: bits per sum
  const float* levels;
  float* estimate;
};
ABT_LAUNCHER int average_codes(const AverageCodes& job, void* stream);

// Averages the workers' records, which `in` holds one worker after another. A record holds one
// level (fp32) per tensor, then two-bit codes.
struct AverageRecords : TernaryBlocks {
  const std::uint8_t* in;
  std::int64_t stride;  // bytes of a record
  int workers;
  float* estimate;
};
ABT_LAUNCHER int average_records(const AverageRecords& job, void* stream);

namespace ternary_codes {

// Added to a sum for each value that is not finite: larger than any sum of codes, but small enough
// that the sum of ops::kMaxCodeWorkers of them fits into 32 bits.
constexpr int kNotFinite = 1 << 18;

template <class Team>
using Sums = std::int32_t[Team::kUnits][Team::kUnit];

// -1, 0 or 1 for the two-bit code of -a, 0 or +a.
ABT_HOST_DEVICE constexpr int sign_of(unsigned code) {
  const int high = static_cast<int>(code >> 1);
  const int low = static_cast<int>(code & 1);
  return 2 * (high & low) - high;
}

// The position of a block's codes among the codes of all blocks.
struct Place {
  std::int64_t first;
  std::int64_t count;

  ABT_HOST_DEVICE Place(const TernaryBlocks& job, const CodeBlock& block)
      : first(kGroup * (block.group - job.blocks[0].group)),
        count(std::int64_t{kGroup} * groups_of(block)) {
    count = count < job.codes - first ? count : job.codes - first;
  }
};

// Calls use(k, of(slot)) for each element k of a unit of the block, with the slot of the element's
// tensor; elements beyond the block's end get the slot of some tensor in it. Unless kPacked, the
// block lies within one tensor, and `own` points to the block. If kPacked, `own` points to an entry
// of TernaryBlocks::tensors that does not lie after the unit's first element, and advances to the
// entry that contains the unit's last element.
template <bool kPacked, class Team, class Of, class Use>
ABT_INLINE void for_elements(
    const CodeBlock& block, int unit, const CodeBlock*& own, const Of& of, const Use& use) {
  const std::int64_t begin = block.begin + unit * Team::kUnit;
  const auto end = [&]() ABT_INLINED { return own->begin + own->count; };
  const auto find = [&](std::int64_t i) ABT_INLINED {
    while (i >= end() && i < block.begin + block.count) {
      ++own;
    }
  };
  if (kPacked) {
    find(begin);
  }
  if (!kPacked || begin + Team::kUnit <= end()) {  // of(slot) is called only once
    const auto value = of(own->slot);
    ABT_UNROLL
    for (int k = 0; k < Team::kUnit; ++k) {
      use(k, value);
    }
    return;
  }
  ABT_UNROLL
  for (int k = 0; k < Team::kUnit; ++k) {
    find(begin + k);
    use(k, of(own->slot));
  }
}

ABT_INLINE const CodeBlock* first_tensor(const TernaryBlocks& job, std::int64_t b) {
  return job.tensors == nullptr ? job.blocks + b : job.tensors + job.blocks[b].slot;
}

template <bool kPacked, bool kByChance, class Team>
ABT_INLINE void encode(Team& team, const EncodeTernary& job, std::int64_t b) {
  struct Tensor {
    float level, cut;
  };
  const CodeBlock block = job.blocks[b];
  const Place place(job, block);
  const CodeBlock* own = first_tensor(job, b);
  const auto tensor = [&](std::int64_t slot) ABT_INLINED {
    return Tensor{job.levels[slot], kByChance ? 0.0f : job.cuts[slot]};
  };
  team.for_units(block, [&](int unit, int) ABT_INLINED {
    float x[Team::kUnit];
    std::uint32_t random[Team::kUnit];
    std::uint32_t codes[Team::kUnit];
    team.load(job.u + block.begin, unit, block.count, x);
    if (kByChance) {
      team.random(job.random, block.begin, unit, random);
    }
    for_elements<kPacked, Team>(block, unit, own, tensor, [&](int k, const Tensor& of) ABT_INLINED {
      const float size = ::fabsf(x[k]);
      bool is_sent = size > of.cut;
      if (kByChance) {
        const auto bits = static_cast<std::int32_t>(random[k] >> 8);
        is_sent = static_cast<float>(bits) * 0x1.0p-24f < size / of.level;
      }
      const std::uint32_t finite = kPacked ? ~0u : all_ones(size <= kLargestFloat);
      const std::uint32_t sent = all_ones(is_sent) & finite;
      const std::uint32_t negative = all_ones(x[k] < 0.0f);
      codes[k] = ((3 + negative) & sent) | (~finite & 1);
      x[k] -= float_of((bits_of(of.level) ^ (negative & 0x80000000u)) & sent);
    });
    if (job.form == CodeForm::Bytes) {
      team.store_bytes(job.wire + place.first, unit, place.count, [&](int k) ABT_INLINED {
        return static_cast<std::uint8_t>(1 + sign_of(codes[k]));
      });
    } else {
      team.store_two_bits(job.wire + packed_bytes(place.first), unit, place.count, codes);
    }
    if (job.rest != nullptr) {
      team.store(
          job.rest + block.begin, unit, block.count, [&](int k) ABT_INLINED { return x[k]; });
    }
  });
}

// Adds to `sums` the signs of all workers' codes of a block, plus `workers`. A result above
// 2 * workers means that a value is not finite.
template <class Team>
ABT_INLINE void add_codes(
    const Team& team, const TernaryBlocks& job, const CodeBlock& block, const void* in, int workers,
    Sums<Team>& sums) {
  const Place place(job, block);
  const auto* codes_of_block = static_cast<const std::uint8_t*>(in) + packed_bytes(place.first);
  for (int w = 0; w < workers; ++w) {
    team.for_units(block, [&](int unit, int own) ABT_INLINED {
      std::uint32_t codes[Team::kUnit];
      team.two_bits(codes_of_block + w * packed_bytes(job.codes), unit, place.count, codes);
      ABT_UNROLL
      for (int k = 0; k < Team::kUnit; ++k) {
        const auto not_finite = static_cast<std::int32_t>(codes[k] & ~(codes[k] >> 1) & 1);
        sums[own][k] += sign_of(codes[k]) + 1 + not_finite * kNotFinite;
      }
    });
  }
}

template <bool kPacked, class Team>
ABT_INLINE void average(Team& team, const AverageCodes& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  const CodeBlock* tensor = first_tensor(job, b);
  // The mean is (level * sum) / workers for packed codes, but (level / workers) * sum for others,
  // which may differ in the last bit. Both orders stay, so that runs give the same results as with
  // earlier versions.
  const auto workers = static_cast<float>(job.workers);
  const float share = job.levels[tensor->slot] / workers;
  const auto mean_of = [&](std::int32_t sum, float level) ABT_INLINED {
    const auto known = static_cast<float>(sum - job.workers);
    const float mean = kPacked ? level * known / workers : share * known;
    const std::uint32_t finite = all_ones(sum <= 2 * job.workers);
    return float_of((bits_of(mean) & finite) | (kNan & ~finite));
  };
  const auto level = [&](std::int64_t slot) ABT_INLINED { return job.levels[slot]; };
  const auto store_means = [&](int unit, const auto& sums) ABT_INLINED {
    float levels[Team::kUnit] = {};
    if (kPacked) {
      for_elements<true, Team>(
          block, unit, tensor, level, [&](int k, float a) ABT_INLINED { levels[k] = a; });
    }
    team.store(job.estimate + block.begin, unit, block.count, [&](int k) ABT_INLINED {
      return mean_of(sums[k], levels[k]);
    });
  };
  if (job.wire == CodeWire::Bytes) {
    const Place place(job, block);
    const auto* const bytes = static_cast<const std::uint8_t*>(job.in) + place.first;
    team.for_units(block, [&](int unit, int) ABT_INLINED {
      std::uint8_t sums[Team::kUnit];
      team.bytes(bytes, unit, place.count, sums);
      store_means(unit, sums);
    });
    return;
  }
  Sums<Team> sums = {};
  if (job.wire == CodeWire::Codes) {
    add_codes(team, job, block, job.in, job.workers, sums);
  } else {
    const std::int64_t before_block = job.bits * (block.group - job.blocks[0].group);
    const auto* const planes = static_cast<const std::uint32_t*>(job.in) + before_block;
    for (int p = 0; p < job.bits; ++p) {
      team.for_units(block, [&](int unit, int own) ABT_INLINED {
        const std::uint32_t plane = team.bits(planes + p * groups_of(block), unit);
        ABT_UNROLL
        for (int k = 0; k < Team::kUnit; ++k) {
          sums[own][k] |= static_cast<std::int32_t>((plane >> k & 1) << p);
        }
      });
    }
  }
  team.for_units(block, [&](int unit, int own) ABT_INLINED { store_means(unit, sums[own]); });
}

}  // namespace ternary_codes

template <class Team>
ABT_INLINE void work(Team& team, const EncodeTernary& job, std::int64_t b) {
  if (job.tensors == nullptr) {
    ternary_codes::encode</*kPacked=*/false, /*kByChance=*/false>(team, job, b);
  } else if (job.cuts == nullptr) {
    ternary_codes::encode</*kPacked=*/true, /*kByChance=*/true>(team, job, b);
  } else {
    ternary_codes::encode</*kPacked=*/true, /*kByChance=*/false>(team, job, b);
  }
}

template <class Team>
ABT_INLINE void work(Team& team, const PackSums& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  ternary_codes::Sums<Team> sums = {};
  ternary_codes::add_codes(team, job, block, job.in, job.workers, sums);
  const std::int64_t before = job.bits * (block.group - job.blocks[0].group);
  const int most = 2 * job.workers + 1;
  team.for_units(block, [&](int unit, int own) ABT_INLINED {
    for (int p = 0; p < job.bits; ++p) {
      std::uint32_t plane = 0;
      ABT_UNROLL
      for (int k = 0; k < Team::kUnit; ++k) {
        const int sum = sums[own][k] < most ? sums[own][k] : most;
        plane |= (static_cast<std::uint32_t>(sum) >> p & 1) << k;
      }
      team.store_bits(job.wire + before + p * groups, unit, plane);
    }
  });
}

template <class Team>
ABT_INLINE void work(Team& team, const AverageCodes& job, std::int64_t b) {
  if (job.tensors == nullptr) {
    ternary_codes::average</*kPacked=*/false>(team, job, b);
  } else {
    ternary_codes::average</*kPacked=*/true>(team, job, b);
  }
}

template <class Team>
ABT_INLINE void work(Team& team, const AverageRecords& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  const ternary_codes::Place place(job, block);
  float sums[Team::kUnits][Team::kUnit] = {};
  for (int w = 0; w < job.workers; ++w) {
    const std::uint8_t* const record = job.in + w * job.stride;
    const std::uint8_t* const codes_of_all = record + job.stride - packed_bytes(job.codes);
    const CodeBlock* own = ternary_codes::first_tensor(job, b);
    const auto level = [&](std::int64_t slot) ABT_INLINED {
      float a;
      memcpy(&a, record + 4 * slot, sizeof(a));
      return a;
    };
    team.for_units(block, [&](int unit, int mine) ABT_INLINED {
      std::uint32_t codes[Team::kUnit];
      team.two_bits(codes_of_all + packed_bytes(place.first), unit, place.count, codes);
      ternary_codes::for_elements</*kPacked=*/true, Team>(
          block, unit, own, level, [&](int k, float a) ABT_INLINED {
            sums[mine][k] += a * static_cast<float>(ternary_codes::sign_of(codes[k]));
          });
    });
  }
  const auto workers = static_cast<float>(job.workers);
  team.for_units(block, [&](int unit, int mine) ABT_INLINED {
    team.store(job.estimate + block.begin, unit, block.count, [&](int k) ABT_INLINED {
      return sums[mine][k] / workers;
    });
  });
}

}  // namespace abtrain::kernels
