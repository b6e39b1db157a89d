// Functions that the kernels on code blocks share. 256 threads process a block: thread t processes
// the block's elements 8 t .. 8 t + 7 in round 0 and 2048 + 8 t .. 2048 + 8 t + 7 in round 1.
#pragma once

#include "kernels/elements.cuh"
#include "kernels/launch.cuh"
#include "kernels/team.h"

namespace abtrain::kernels {

constexpr int kThreads = 256;
constexpr int kEight = 8;
constexpr int kRounds = kBlock / (kThreads * kEight);

// Returns the index in the block of the first element that this thread processes in a round.
__device__ inline int first_of(int round) {
  return (round * kThreads + static_cast<int>(threadIdx.x)) * kEight;
}

// Loads this thread's elements of a block of `count` elements; elements beyond them are 0.
__device__ inline void load_block(
    const float* from, std::int64_t count, float (&x)[kRounds][kEight]) {
  const bool wide = is_aligned(from, 16);
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    load_first(from + first_of(r), count - first_of(r), wide, x[r]);
  }
}

// Writes this thread's eight lanes to `tree`, an array of lanes in shared memory.
__device__ inline void write_lanes(float* tree, const float (&x)[kEight]) {
  store_first(tree + kEight * threadIdx.x, kEight, true, x);
}

// Adds the upper half of the `lanes` lanes of `tree` to the lower half until the first lane holds
// the sum, and likewise for the `more` (at most `lanes`) lanes of `other`. All threads of the block
// must call it, after writing their lanes.
template <class T, class Other>
__device__ void add_by_halves(T* tree, int lanes, Other* other, int more) {
  combine_by_halves(lanes, [=](int to, int from) {
    tree[to] += tree[from];
    if (from - to <= more / 2) {
      other[to] += other[from];
    }
  });
}

}  // namespace abtrain::kernels
