// Each op on code blocks has one body: a template over the Team that processes a block, compiled
// for a thread block of a GPU (team_cuda.cuh) and for a host thread (ops/team_host.h). As the
// source is the same, GPU and CPU results are bit-identical.
//
//   template <class Team>
//   ABT_INLINE void work(Team& team, const MyJob& job, std::int64_t b) {
//     const CodeBlock block = job.blocks[b];
//     float* const u = job.u + block.begin;
//     team.for_units(block, [&](int unit, int) ABT_INLINED {
//       float x[Team::kUnit];
//       team.load(u, unit, block.count, x);
//       team.store(u, unit, block.count, [&](int k) ABT_INLINED { return 2 * x[k]; });
//     });
//   }
//
// A block is divided into units of kUnit adjacent elements, which the team's members (threads)
// share. On a GPU a unit has 8 elements, and each thread processes two units. On the host a unit
// has 32 elements, and one thread processes all units, in loops that the compiler vectorizes. A
// Team provides
//   kUnit             elements per unit
//   kUnits            units per member
//   for_units(block, use)  calls use(unit, own) for each of the member's units in the block's
//                     groups; `unit` counts the block's units, `own` the member's, both from 0
//   bits(words, unit), store_bits(words, unit, bits)
//                     reads or writes a unit's bits, one per element, in an array with one
//                     32-bit word per group
//   load(from, unit, count, x), store(to, unit, count, value)
//                     reads or writes a unit's elements in a buffer that holds the block's first
//                     `count` elements; elements beyond these are read as 0 and not written;
//                     value(k) gives the unit's k-th element to store
//   bytes(from, unit, count, x), store_bytes(to, unit, count, value)
//                     like load() and store(), for an array with one byte per element
//   two_bits(from, unit, count, codes), store_two_bits(to, unit, count, codes)
//                     like load() and store(), for an array of two-bit codes
//   random(stream, first, unit, words)
//                     writes a unit's random words, one per element; the block's first element
//                     has word `first` of the stream, a multiple of 4
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/bits.h"
#include "kernels/code_blocks.h"

namespace abtrain::kernels {

// Bytes that `numel` two-bit codes take.
ABT_HOST_DEVICE constexpr std::int64_t packed_bytes(std::int64_t numel) {
  return (numel + 3) / 4;
}
// Position of the lower bit of two-bit code k in a little-endian word. The first of a byte's four
// codes is in the byte's two high bits.
ABT_HOST_DEVICE constexpr int shift_of(int k) {
  return 8 * (k / 4) + 6 - 2 * (k % 4);
}

ABT_HOST_DEVICE inline std::int64_t groups_of(const CodeBlock& block) {
  return (block.count + kGroup - 1) / kGroup;
}

struct SumAndCount {
  float sum;
  int count;
};

}  // namespace abtrain::kernels
