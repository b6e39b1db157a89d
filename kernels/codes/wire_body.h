// Kernel bodies for Int8, Int4 and Int2 (wire_codes.h): templates over the ChunkTeam that processes
// a chunk. A chunk consists of kRuns runs of kNormLanes adjacent elements, and element i of a run
// belongs to lane i (chunk_norm.h). Each member (thread) of a team processes kLane adjacent lanes
// in all runs: four on a GPU, all 32 on the host. A ChunkTeam provides
//   chunk(), count()    the index of its chunk, and the chunk's element count (0 if there is no
//                       such chunk)
//   leads()             whether this member writes the chunk's scale
//   load(from, run, x), store(to, run, value)
//                       reads or writes the member's elements of a run of the chunk; elements
//                       beyond count() are read as 0 and not written; value(lane) gives the
//                       element to store
//   bytes(from, run, x), store_bytes(to, run, value)
//                       like load() and store(), for row `run` of the chunk's codes (kRows), one
//                       byte per lane; the chunk's codes begin at `from` or `to`
//   largest(own)        the largest `own` of all members
//   sums<k>(lanes, own) the sum of all lanes in the order of chunk_norm.h, and the sum of the
//                       members' counts `own`; k = 0, 1, ... numbers the calls in a body
#pragma once

#include "kernels/blocks/chunk_norm.h"
#include "kernels/codes/wire_codes.h"
#include "kernels/codes/wire_scales.h"
#include "kernels/team.h"

namespace abtrain::kernels {

constexpr int kRuns = static_cast<int>(kWireChunk) / kNormLanes;

template <class Team>
using ChunkValues = float[kRuns][Team::kLane];
template <class Team>
using ChunkCodes = std::uint32_t[kRuns][Team::kLane];

// Calls use(run, lane) for all elements of a member.
template <class Team, class Use>
ABT_INLINE void for_elements(const Use& use) {
  ABT_UNROLL
  for (int run = 0; run < kRuns; ++run) {
    ABT_UNROLL
    for (int lane = 0; lane < Team::kLane; ++lane) {
      use(run, lane);
    }
  }
}

// scale_integers() (Int8, Int4) and encode_levels() (Int2) return the bits of the chunk's scale.
// encode_levels() also sets the codes.
template <int kBits, class Team>
ABT_INLINE std::uint16_t scale_integers(Team& team, const ChunkValues<Team>& x) {
  const auto keep_larger = [](std::int32_t& largest, std::int32_t bits)
                               ABT_INLINED { largest = largest < bits ? bits : largest; };
  std::int32_t lanes[Team::kLane] = {};
  for_elements<Team>([&](int run, int lane) ABT_INLINED {
    keep_larger(lanes[lane], static_cast<std::int32_t>(magnitude_bits(x[run][lane])));
  });
  std::int32_t largest = 0;
  ABT_UNROLL
  for (int lane = 0; lane < Team::kLane; ++lane) {
    keep_larger(largest, lanes[lane]);
  }
  return integer_scale<kBits>(static_cast<std::uint32_t>(team.largest(largest)));
}

template <class Team>
ABT_INLINE std::uint16_t encode_levels(
    Team& team, const ChunkValues<Team>& x, ChunkCodes<Team>& codes) {
  float squares[Team::kLane] = {};
  for_elements<Team>([&](int run, int lane) ABT_INLINED {
    squares[lane] = ::fmaf(x[run][lane], x[run][lane], squares[lane]);
  });
  const int count = team.count();
  const float cut = level_cut(team.template sums<0>(squares, 0).sum, count);
  float products[Team::kLane] = {};
  int threes[Team::kLane] = {};
  for_elements<Team>([&](int run, int lane) ABT_INLINED {
    const float magnitude = ::fabsf(x[run][lane]);
    const bool above = magnitude > cut;
    products[lane] = ::fmaf(magnitude, level_of(above), products[lane]);
    threes[lane] += above ? 1 : 0;
    codes[run][lane] = signed_code(x[run][lane], above);
  });
  int own = 0;
  ABT_UNROLL
  for (int lane = 0; lane < Team::kLane; ++lane) {
    own += threes[lane];
  }
  const SumAndCount sums = team.template sums<1>(products, own);
  return level_scale(sums.sum, count, sums.count);
}

// The codes of a chunk are stored in kRows rows of bytes, one byte per lane: in row r, a lane's
// byte holds the lane's codes in runs r, r + kRows, r + 2 kRows, ...
template <int kBits>
constexpr int kRows = kBits / 2;

template <int kBits, class Team>
ABT_INLINE void encode_chunk(Team& team, const EncodeWire& job) {
  ChunkValues<Team> x;
  ABT_UNROLL
  for (int run = 0; run < kRuns; ++run) {
    team.load(job.u, run, x[run]);
  }
  ChunkCodes<Team> codes;
  std::uint16_t bits;
  if constexpr (kBits == 2) {
    bits = encode_levels(team, x, codes);
  } else {
    bits = scale_integers<kBits>(team, x);
  }
  if (team.count() == 0) {
    return;
  }
  const float scale = scale_value(bits);
  ABT_UNROLL
  for (int run = 0; run < kRuns; ++run) {
    if constexpr (kBits != 2) {
      // A mask: a branch would keep the host's compiler from processing runs together.
      const std::uint32_t codable = all_ones(scale > 0);
      const float divisor = scale > 0 ? scale : 1.0f;
      ABT_UNROLL
      for (int lane = 0; lane < Team::kLane; ++lane) {
        codes[run][lane] = integer_code(x[run][lane], divisor) & codable;
      }
    }
    team.store(job.u, run, [&](int lane) ABT_INLINED {
      return rest_of(x[run][lane], scale, multiple_of<kBits>(codes[run][lane]));
    });
  }
  std::uint8_t* const to = job.record + codes_begin(job.layout) + team.chunk() * chunk_bytes(kBits);
  ABT_UNROLL
  for (int row = 0; row < kRows<kBits>; ++row) {
    team.store_bytes(to, row, [&](int lane) ABT_INLINED {
      constexpr std::uint32_t kMask = (1u << kBits) - 1;
      std::uint32_t byte = 0;
      ABT_UNROLL
      for (int part = 0; part < 8 / kBits; ++part) {
        const std::uint32_t code = codes[row + part * kRows<kBits>][lane];
        byte |= (code & kMask) << kBits * part;
      }
      return static_cast<std::uint8_t>(byte);
    });
  }
  if (team.leads()) {
    auto* const scales = reinterpret_cast<std::uint16_t*>(job.record);
    scales[team.chunk()] = bits;
    if (team.chunk() % 2 == 0 && team.chunk() + 1 == wire_chunks(job.layout)) {
      scales[team.chunk() + 1] = 0;
    }
  }
}

template <int kBits, class Team>
ABT_INLINE void decode_chunk(const Team& team, const DecodeWire& job) {
  if (team.count() == 0) {
    return;
  }
  const float scale = scale_value(reinterpret_cast<const std::uint16_t*>(job.record)[team.chunk()]);
  const std::uint8_t* const from =
      job.record + codes_begin(job.layout) + team.chunk() * chunk_bytes(kBits);
  const float factor = job.factor;
  std::uint8_t bytes[kRows<kBits>][Team::kLane];
  ABT_UNROLL
  for (int row = 0; row < kRows<kBits>; ++row) {
    team.bytes(from, row, bytes[row]);
  }
  ABT_UNROLL
  for (int run = 0; run < kRuns; ++run) {
    const auto value = [&](int lane) ABT_INLINED {
      const std::uint32_t code =
          std::uint32_t{bytes[run % kRows<kBits>][lane]} >> kBits * (run / kRows<kBits>);
      return scale * multiple_of<kBits>(code);
    };
    if (job.add) {
      float x[Team::kLane];
      team.load(job.out, run, x);
      team.store(job.out, run, [&](int lane) ABT_INLINED {
        return decoded(x[lane], factor, value(lane), true);
      });
    } else {
      team.store(job.out, run, [&](int lane) ABT_INLINED {
        return decoded(0, factor, value(lane), false);
      });
    }
  }
}

}  // namespace abtrain::kernels
