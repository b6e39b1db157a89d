// One body per op on code blocks: a template over the Team that processes a
// block, compiled for a thread block of a GPU (team_cuda.cuh) and for a host
// thread (team_host.h). Both give the same bits, because it is the same source.
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
// A block is divided into units of kUnit adjacent elements. A GPU thread has two units of eight
// elements; a host thread has all units, of 32 elements, which its compiler vectorizes. A Team
// provides
//   kUnit             elements per unit
//   kUnits            units per member
//   for_units(block, use)  use(unit, own) for each of the member's units that
//                     have an element of a group of the block
//   bits(words, unit), store_bits(words, unit, bits)
//                     the bits of a unit in an array with a word per group
//   load(from, unit, count, x), store(to, unit, count, value)
//                     a unit's elements in a buffer that has `count` of the
//                     block's; elements beyond are read as 0 and not written.
//                     value(k) gives the unit's k-th element to store
//   bytes(from, unit, count, x), store_bytes(to, unit, count, value)
//                     the same for an array with a byte per element
//   two_bits(from, unit, count, codes), store_two_bits(to, unit, count, codes)
//                     the same for an array of two-bit codes
//   random(stream, first, unit, words)
//                     a unit's random words, one per element; the block's
//                     first element has the word `first`, a multiple of 4
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/bits.h"
#include "kernels/code_blocks.h"

namespace abtrain::kernels {

// Bytes of this many two-bit codes.
ABT_HOST_DEVICE constexpr std::int64_t packed_bytes(std::int64_t numel) {
  return (numel + 3) / 4;
}
// The bit at which two-bit code k begins in a little-endian word. The first code of a byte has its
// two high bits.
ABT_HOST_DEVICE constexpr int shift_of(int k) {
  return 8 * (k / 4) + 6 - 2 * (k % 4);
}

// The number of groups in a block.
ABT_HOST_DEVICE inline std::int64_t groups_of(const CodeBlock& block) {
  return (block.count + kGroup - 1) / kGroup;
}

struct SumAndCount {
  float sum;
  int count;
};

}  // namespace abtrain::kernels
