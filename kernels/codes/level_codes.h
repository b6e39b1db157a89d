// Codes -a, 0, +a of values, with one level a per tensor, for tensors that
// follow one another without gaps: encoding, and the mean over workers
// (ops/level_codes.h has the meaning): the bodies (team.h) and their launchers.
// The launchers take device pointers, are asynchronous on `stream` (a
// cudaStream_t) and return a cudaError_t as an int.
//
// Codes (kernels/codes/ternary_codes.h) continue across the ends of tensors, so
// that a byte may hold two-bit codes of several ones. A job's blocks are
// therefore windows: kBlock elements from a multiple of kBlock on, whichever
// tensors they belong to. A worker's record is its levels (fp32, one per
// tensor) followed by its two-bit codes.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/codes/ternary_codes.h"
#include "kernels/random.h"
#include "kernels/team.h"

namespace abtrain::kernels {

// In all jobs: the slot of a window is the index in `tensors`, the blocks of
// single tensors, of the block that has the window's first element.
struct EncodeAbove {
  const CodeBlock* blocks;
  std::int64_t count;
  const CodeBlock* tensors;
  float* u;             // becomes what was not sent, if levels are given
  const float* cuts;    // one per tensor, 0 or more: |u| above it is sent
  const float* levels;  // one per tensor, or none
  CodeForm form;
  std::uint8_t* codes;
};
ABT_LAUNCHER int encode_above(const EncodeAbove& job, void* stream);

struct EncodeByChance {
  const CodeBlock* blocks;
  std::int64_t count;
  const CodeBlock* tensors;
  const float* u;
  const float* levels;  // an element is sent with probability |u| / level
  CodeForm form;
  std::uint8_t* codes;
  RandomStream random;  // a word per element
};
ABT_LAUNCHER int encode_by_chance(const EncodeByChance& job, void* stream);

// The mean of the workers' records, which follow one another in `in`.
struct AverageLevels {
  const CodeBlock* blocks;
  std::int64_t count;
  const CodeBlock* tensors;
  const std::uint8_t* in;
  std::int64_t stride;  // bytes of a record
  std::int64_t head;    // bytes of its levels
  int workers;
  float* estimate;
};
ABT_LAUNCHER int average_levels(const AverageLevels& job, void* stream);

// The mean from sums of byte codes, with levels that all workers share.
struct AverageByteLevels {
  const CodeBlock* blocks;
  std::int64_t count;
  const CodeBlock* tensors;
  const std::uint8_t* sums;
  int workers;
  const float* levels;
  float* estimate;
};
ABT_LAUNCHER int average_byte_levels(const AverageByteLevels& job, void* stream);

namespace level_codes {

// Calls use(k, of(tensor)) for each element k of a window's unit; beyond the
// window's end, with the last tensor. `own`: a block of a tensor, not after the
// one that has the unit's first element; becomes one not after the next unit's.
template <class Team, class Of, class Use>
ABT_INLINE void for_elements(
    const CodeBlock& window, int unit, const CodeBlock*& own, const Of& of, const Use& use) {
  const std::int64_t begin = window.begin + unit * Team::kUnit;
  const auto end = [&]() ABT_INLINED { return own->begin + own->count; };
  const auto find = [&](std::int64_t i) ABT_INLINED {
    while (i >= end() && i < window.begin + window.count) {
      ++own;
    }
  };
  find(begin);
  if (begin + Team::kUnit <= end()) {  // what belongs to the tensor is read once
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

ABT_HOST_DEVICE inline std::uint32_t code_of(float x, bool sent) {
  return (3 - (bits_of(x) >> 31)) & all_ones(sent);
}

template <class Team>
ABT_INLINE void store_codes(
    const Team& team, const CodeBlock& window, int unit, CodeForm form,
    const std::uint32_t (&codes)[Team::kUnit], std::uint8_t* to) {
  if (form == CodeForm::Bytes) {
    team.store_bytes(to + window.begin, unit, window.count, [&](int k) ABT_INLINED {
      return byte_code(codes[k]);
    });
  } else {
    team.store_two_bits(to + window.begin / 4, unit, window.count, codes);
  }
}

}  // namespace level_codes

template <class Team>
ABT_INLINE void work(Team& team, const EncodeAbove& job, std::int64_t b) {
  struct Tensor {
    float cut, level;
  };
  const CodeBlock window = job.blocks[b];
  const CodeBlock* own = job.tensors + window.slot;
  const bool leaves_rest = job.levels != nullptr;
  const auto tensor = [&](std::int64_t slot) ABT_INLINED {
    return Tensor{job.cuts[slot], leaves_rest ? job.levels[slot] : 0.0f};
  };
  team.for_units(window, [&](int unit, int) ABT_INLINED {
    float x[Team::kUnit];
    std::uint32_t codes[Team::kUnit];
    team.load(job.u + window.begin, unit, window.count, x);
    level_codes::for_elements<Team>(
        window, unit, own, tensor, [&](int k, const Tensor& of) ABT_INLINED {
          codes[k] = level_codes::code_of(x[k], ::fabsf(x[k]) > of.cut);
          x[k] -= of.level * static_cast<float>(sign_of(codes[k]));
        });
    level_codes::store_codes(team, window, unit, job.form, codes, job.codes);
    if (leaves_rest) {
      team.store(job.u + window.begin, unit, window.count, [&](int k) ABT_INLINED { return x[k]; });
    }
  });
}

template <class Team>
ABT_INLINE void work(Team& team, const EncodeByChance& job, std::int64_t b) {
  const CodeBlock window = job.blocks[b];
  const CodeBlock* own = job.tensors + window.slot;
  const auto level = [&](std::int64_t slot) ABT_INLINED { return job.levels[slot]; };
  team.for_units(window, [&](int unit, int) ABT_INLINED {
    float x[Team::kUnit];
    std::uint32_t random[Team::kUnit];
    std::uint32_t codes[Team::kUnit];
    team.load(job.u + window.begin, unit, window.count, x);
    team.random(job.random, window.begin, unit, random);
    level_codes::for_elements<Team>(window, unit, own, level, [&](int k, float a) ABT_INLINED {
      const auto bits = static_cast<std::int32_t>(random[k] >> 8);
      const float uniform = static_cast<float>(bits) * 0x1.0p-24f;
      codes[k] = level_codes::code_of(x[k], uniform < ::fabsf(x[k]) / a);
    });
    level_codes::store_codes(team, window, unit, job.form, codes, job.codes);
  });
}

template <class Team>
ABT_INLINE void work(Team& team, const AverageLevels& job, std::int64_t b) {
  const CodeBlock window = job.blocks[b];
  float sums[Team::kUnits][Team::kUnit] = {};
  for (int w = 0; w < job.workers; ++w) {
    const std::uint8_t* const record = job.in + w * job.stride;
    const CodeBlock* own = job.tensors + window.slot;
    const auto level = [&](std::int64_t slot) ABT_INLINED {
      float a;
      memcpy(&a, record + 4 * slot, sizeof(a));
      return a;
    };
    team.for_units(window, [&](int unit, int mine) ABT_INLINED {
      std::uint32_t codes[Team::kUnit];
      team.two_bits(record + job.head + window.begin / 4, unit, window.count, codes);
      level_codes::for_elements<Team>(window, unit, own, level, [&](int k, float a) ABT_INLINED {
        sums[mine][k] += a * static_cast<float>(sign_of(codes[k]));
      });
    });
  }
  const auto workers = static_cast<float>(job.workers);
  team.for_units(window, [&](int unit, int mine) ABT_INLINED {
    team.store(job.estimate + window.begin, unit, window.count, [&](int k) ABT_INLINED {
      return sums[mine][k] / workers;
    });
  });
}

template <class Team>
ABT_INLINE void work(Team& team, const AverageByteLevels& job, std::int64_t b) {
  const CodeBlock window = job.blocks[b];
  const CodeBlock* own = job.tensors + window.slot;
  const auto level = [&](std::int64_t slot) ABT_INLINED { return job.levels[slot]; };
  const auto workers = static_cast<float>(job.workers);
  team.for_units(window, [&](int unit, int) ABT_INLINED {
    std::uint8_t sums[Team::kUnit];
    float mean[Team::kUnit];
    team.bytes(job.sums + window.begin, unit, window.count, sums);
    level_codes::for_elements<Team>(window, unit, own, level, [&](int k, float a) ABT_INLINED {
      mean[k] = a * static_cast<float>(int{sums[k]} - job.workers) / workers;
    });
    team.store(job.estimate + window.begin, unit, window.count, [&](int k) ABT_INLINED {
      return mean[k];
    });
  });
}

}  // namespace abtrain::kernels
