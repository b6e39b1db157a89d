// Signs of blocks of elements, with one scale per block: what a worker sends,
// how the server of a shard processes it, and what all workers read
// (ops/sign_codes.h has the meaning): the bodies (team.h) and their launchers.
// The launchers take device pointers, are asynchronous on `stream` (a
// cudaStream_t) and return a cudaError_t as an int.
//
// The record of a block of g groups has the scale (a float), g words of signs
// (bit k of a word is set if element k of its group is negative) and, if
// `fresh`, g words that tell which elements are alive. Records follow one
// another.
#pragma once

#include <cstdint>

#include "kernels/team.h"

namespace abtrain::kernels {

struct EncodeSigns {
  const CodeBlock* blocks;
  std::int64_t count;
  float* u;                    // becomes what was not sent
  const std::uint32_t* alive;  // one word per group, from the first block on
  std::uint32_t* wire;
  // Elements other than zero are alive, which is sent; `alive` is ignored.
  bool fresh;
};
ABT_LAUNCHER int encode_signs(const EncodeSigns& job, void* stream);

struct ServeSigns {
  const CodeBlock* blocks;  // the shard's blocks
  std::int64_t count;
  const std::uint32_t* in;  // the workers' records, worker after worker
  std::int64_t stride;      // words per worker
  int workers;
  const std::uint32_t* alive;  // the shard's words
  float* residual;             // the shard's residual
  std::uint32_t* wire;
  bool fresh;
};
ABT_LAUNCHER int serve_signs(const ServeSigns& job, void* stream);

struct DecodeSigns {
  const CodeBlock* blocks;
  std::int64_t count;
  const std::uint32_t* wire;
  std::uint32_t* alive;  // written if fresh
  float* estimate;
  bool fresh;
};
ABT_LAUNCHER int decode_signs(const DecodeSigns& job, void* stream);

namespace sign_codes {

// Where the record of block b begins.
ABT_INLINE std::int64_t record_of(const CodeBlock* blocks, std::int64_t b, bool fresh) {
  return b + (fresh ? 2 : 1) * (blocks[b].group - blocks[0].group);
}

// The scale with the element's sign; 0 for a dead element, or NaN if the scale
// is not finite. Without branches, so that compilers vectorize it.
ABT_INLINE float value_of(float scale, std::uint32_t signs, std::uint32_t alive, int k) {
  const std::uint32_t mask = 0u - (alive >> k & 1);
  const std::uint32_t live = bits_of(scale) | (signs >> k & 1) << 31;
  return float_of((live & mask) | (bits_of(scale * 0.0f) & ~mask));
}

template <class Team>
ABT_INLINE std::uint32_t nonzero(const float* x) {
  return bits_where<Team>(x, [](float v) ABT_INLINED { return v != 0.0f; });
}

// Elements other than zero if `fresh`, else those that are known to be alive.
template <class Team>
ABT_INLINE void find_alive(
    Team& team, const CodeBlock& block, bool fresh, typename Team::Values& x,
    const std::uint32_t* known, typename Team::Bits& alive) {
  if (fresh) {
    team.for_units(block, [&](int, int own) ABT_INLINED { alive[own] = nonzero<Team>(x[own]); });
  } else {
    team.for_units(
        block, [&](int unit, int own) ABT_INLINED { alive[own] = team.bits(known, unit); });
  }
}

// Writes the record of x, and subtracts from x what it says.
template <class Team>
ABT_INLINE void write_record(
    Team& team, const CodeBlock& block, bool fresh, typename Team::Values& x,
    const typename Team::Bits& alive, std::uint32_t* record) {
  const auto [sum, count] = team.sums(
      block,
      [&](int low, int high, int k)
          ABT_INLINED { return ::fmaf(x[high][k], x[high][k], x[low][k] * x[low][k]); },
      [&](int own) ABT_INLINED { return count_bits(alive[own]); });
  const float scale = count == 0 ? sum * 0.0f : ::sqrtf(sum / static_cast<float>(count));
  if (team.leads()) {
    record[0] = bits_of(scale);
  }
  if (fresh) {
    const std::int64_t groups = groups_of(block);
    team.for_units(block, [&](int unit, int own) ABT_INLINED {
      team.store_bits(record + 1 + groups, unit, alive[own]);
    });
  }
  // A loop of its own: in the next one, a host thread would wait for each word.
  typename Team::Bits signs;
  team.for_units(block, [&](int unit, int own) ABT_INLINED {
    signs[own] = bits_where<Team>(x[own], [](float v) ABT_INLINED { return bits_of(v) >> 31; });
    team.store_bits(record + 1, unit, signs[own]);
  });
  team.for_units(block, [&](int, int own) ABT_INLINED {
    ABT_UNROLL
    for (int k = 0; k < Team::kUnit; ++k) {
      x[own][k] -= value_of(scale, signs[own], alive[own], k);
    }
  });
  x.store();
}

}  // namespace sign_codes

template <class Team>
ABT_INLINE void work(Team& team, const EncodeSigns& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  const std::uint32_t* known = job.alive + (block.group - job.blocks[0].group);
  typename Team::Values x(job.u + block.begin, block.count);
  typename Team::Bits alive;
  sign_codes::find_alive(team, block, job.fresh, x, known, alive);
  sign_codes::write_record(
      team, block, job.fresh, x, alive, job.wire + sign_codes::record_of(job.blocks, b, job.fresh));
}

template <class Team>
ABT_INLINE void work(Team& team, const ServeSigns& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  const std::int64_t place = sign_codes::record_of(job.blocks, b, job.fresh);
  const std::uint32_t* known = job.alive + (block.group - job.blocks[0].group);
  const float share = 1.0f / static_cast<float>(job.workers);
  typename Team::Values x(job.residual + (block.begin - job.blocks[0].begin), block.count);
  typename Team::Bits alive;
  sign_codes::find_alive(team, block, job.fresh, x, known, alive);
  float sum[Team::kUnits][Team::kUnit] = {};
  for (int w = 0; w < job.workers; ++w) {
    const std::uint32_t* const from = job.in + w * job.stride + place;
    const float scale = float_of(from[0]);
    const auto add = [&](int unit, int own, std::uint32_t there) ABT_INLINED {
      const std::uint32_t signs = team.bits(from + 1, unit);
      ABT_UNROLL
      for (int k = 0; k < Team::kUnit; ++k) {
        sum[own][k] += sign_codes::value_of(scale, signs, there, k);
      }
    };
    if (!job.fresh) {
      team.for_units(block, [&](int unit, int own) ABT_INLINED { add(unit, own, alive[own]); });
      continue;
    }
    team.for_units(block, [&](int unit, int own) ABT_INLINED {
      const std::uint32_t there = team.bits(from + 1 + groups, unit);
      add(unit, own, there);
      alive[own] |= there;
    });
  }
  team.for_units(block, [&](int unit, int own) ABT_INLINED {
    // Past the block's end, only a scale that is not finite leaves anything.
    const auto count = static_cast<int>(block.count - unit * Team::kUnit);
    ABT_UNROLL
    for (int k = 0; k < Team::kUnit; ++k) {
      x[own][k] = k < count ? ::fmaf(sum[own][k], share, x[own][k]) : 0.0f;
    }
  });
  sign_codes::write_record(team, block, job.fresh, x, alive, job.wire + place);
}

template <class Team>
ABT_INLINE void work(Team& team, const DecodeSigns& job, std::int64_t b) {
  const CodeBlock block = job.blocks[b];
  const std::int64_t groups = groups_of(block);
  const std::uint32_t* const record = job.wire + sign_codes::record_of(job.blocks, b, job.fresh);
  std::uint32_t* const known = job.alive + (block.group - job.blocks[0].group);
  const float scale = float_of(record[0]);
  team.for_units(block, [&](int unit, int) ABT_INLINED {
    if (job.fresh) {
      team.store_bits(known, unit, team.bits(record + 1 + groups, unit));
    }
    const std::uint32_t signs = team.bits(record + 1, unit);
    const std::uint32_t alive = team.bits(known, unit);
    team.store(job.estimate + block.begin, unit, block.count, [&](int k) ABT_INLINED {
      return sign_codes::value_of(scale, signs, alive, k);
    });
  });
}

}  // namespace abtrain::kernels
