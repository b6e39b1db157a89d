// The Walsh-Hadamard transform of a tile by one thread block. Thread t holds the eight adjacent
// elements 8 t .. 8 t + 7.
#pragma once

#include "kernels/elements.cuh"
#include "kernels/launch.cuh"

namespace abtrain::kernels {

// Returns the place of the tile's element i in shared memory. Eight words of padding after every 64
// elements put elements 64 apart into different banks.
__host__ __device__ constexpr int padded(int i) {
  return i + i / 64 * 8;
}

template <int kLog>
constexpr int kTileThreads = 1 << (kLog - 3);

template <int kLog>
constexpr int kTileBytes = padded(1 << kLog) * static_cast<int>(sizeof(float));

// Computes stages `from` to `to` - 1 on eight elements with indices that differ in the bits first
// .. first + 2.
__device__ inline void butterflies(float (&x)[8], int first, int from, int to) {
#pragma unroll
  for (int bit = 0; bit < 3; ++bit) {
    if (first + bit >= from && first + bit < to) {
      const int stride = 1 << bit;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if ((i & stride) == 0) {
          const float a = x[i];
          const float b = x[i + stride];
          x[i] = a + b;
          x[i + stride] = a - b;
        }
      }
    }
  }
}

// Computes stages 0 to log_size - 1 of a tile of 2^kLog elements. All threads of the block must
// call it. `shared`: kTileBytes<kLog> bytes.
template <int kLog>
__device__ void transform_tile(float (&x)[8], float* shared, int log_size) {
  const int t = static_cast<int>(threadIdx.x);
  butterflies(x, 0, 0, log_size);
  if (log_size <= 3) {
    return;
  }
#pragma unroll
  for (int v = 0; v < 8; ++v) {
    shared[padded(8 * t + v)] = x[v];
  }
  __syncthreads();
#pragma unroll
  for (int from = 3; from < kLog; from += 3) {
    if (from < log_size) {
      // The bits of the last round may overlap those of the round before; butterflies() skips the
      // stages below `from`.
      const int first = from < kLog - 3 ? from : kLog - 3;
      const int low = t & ((1 << first) - 1);
      const int base = ((t >> first) << (first + 3)) + low;
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        x[v] = shared[padded(base + (v << first))];
      }
      butterflies(x, first, from, log_size);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        shared[padded(base + (v << first))] = x[v];
      }
      __syncthreads();
    }
  }
#pragma unroll
  for (int v = 0; v < 8; ++v) {
    x[v] = shared[padded(8 * t + v)];
  }
}

}  // namespace abtrain::kernels
