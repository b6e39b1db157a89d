#include "kernels/blocks/chunks.h"

#include <cmath>

#include "kernels/blocks/chunk_norm.h"
#include "kernels/elements.cuh"
#include "kernels/launch.cuh"

namespace abtrain::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int kLane = 4;                             // elements per thread
constexpr int kThreadsOfChunk = kNormLanes / kLane;  // 8
constexpr int kChunksOfBlock = kThreads / kThreadsOfChunk;
// The stride of a row of lanes in shared memory; one extra word puts the rows
// into different banks.
constexpr int kRow = kNormLanes + 1;

// Eight threads per chunk read 128 adjacent bytes at a time. kVector is 4 if
// all chunks are 16-byte aligned, else 1.
template <int kVector>
__global__ void __launch_bounds__(kThreads) norms_kernel(
    float* u, const float* g, bool add, std::int64_t numel, std::int64_t chunk, float* norms) {
  float* rows = reinterpret_cast<float*>(shared_memory());
  const int row = static_cast<int>(threadIdx.x) / kThreadsOfChunk;
  const int first = static_cast<int>(threadIdx.x) % kThreadsOfChunk * kLane;
  const std::int64_t block = std::int64_t{blockIdx.x} * kChunksOfBlock;
  const std::int64_t begin = (block + row) * chunk;
  const std::int64_t left = numel - begin;
  const std::int64_t size = left < chunk ? left : chunk;
  float sums[kLane] = {};
  for (std::int64_t i = first; i < size; i += kNormLanes) {
    float* to = u + begin + i;
    const float* from = g + begin + i;
    if (kVector == kLane && i + kLane <= size) {
      using Values = Packet<float, kLane>;
      Values x = *reinterpret_cast<const Values*>(from);
      if (add) {
        const Values old = *reinterpret_cast<const Values*>(to);
#pragma unroll
        for (int v = 0; v < kLane; ++v) {
          x.values[v] += old.values[v];
        }
      }
      *reinterpret_cast<Values*>(to) = x;
#pragma unroll
      for (int v = 0; v < kLane; ++v) {
        sums[v] = ::fmaf(x.values[v], x.values[v], sums[v]);
      }
      continue;
    }
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      if (i + v < size) {
        const float x = add ? from[v] + to[v] : from[v];
        to[v] = x;
        sums[v] = ::fmaf(x, x, sums[v]);
      }
    }
  }
  for (int v = 0; v < kLane; ++v) {
    rows[row * kRow + first + v] = sums[v];
  }
  __syncthreads();
  const auto mine = static_cast<int>(threadIdx.x);
  if (mine < kChunksOfBlock && (block + mine) * chunk < numel) {
    norms[block + mine] = sum_of_lanes(rows + mine * kRow);
  }
}

// The index in u of element `at` of the wire.
__device__ std::int64_t place_of(const Chunks& chunks, unsigned at) {
  const auto chunk = static_cast<unsigned>(chunks.chunk);
  const unsigned j = at / chunk;
  return chunks.indices[j] * chunks.chunk + (at - j * chunk);
}

template <int kVector>
__global__ void __launch_bounds__(kThreads)
    take_kernel(Chunks chunks, float* u, float scale, float members, __half* wire) {
  using Values = Packet<float, kVector>;
  using Halves = Packet<__half, kVector>;
  const std::int64_t packet = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t at = packet * kVector;
  if (at >= chunks.count * chunks.chunk) {
    return;
  }
  const std::int64_t place = place_of(chunks, static_cast<unsigned>(at));
  const bool whole = place + kVector <= chunks.numel;
  Values x = {};
  if (whole) {
    x = *reinterpret_cast<const Values*>(u + place);
  } else {
    for (int v = 0; v < kVector; ++v) {
      x.values[v] = place + v < chunks.numel ? u[place + v] : 0.0f;
    }
  }
  Halves out;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    store(out.values[v], x.values[v] * scale);
    x.values[v] = ::fmaf(-members, to_float(out.values[v]), x.values[v]);
  }
  reinterpret_cast<Halves*>(wire)[packet] = out;
  if (whole) {
    *reinterpret_cast<Values*>(u + place) = x;
  } else {
    for (int v = 0; v < kVector && place + v < chunks.numel; ++v) {
      u[place + v] = x.values[v];
    }
  }
}

template <int kVector>
__global__ void __launch_bounds__(kThreads)
    put_kernel(Chunks chunks, const __half* wire, float* out, bool add) {
  using Values = Packet<float, kVector>;
  using Halves = Packet<__half, kVector>;
  const std::int64_t packet = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t at = packet * kVector;
  if (at >= chunks.count * chunks.chunk) {
    return;
  }
  const std::int64_t place = place_of(chunks, static_cast<unsigned>(at));
  const Halves in = reinterpret_cast<const Halves*>(wire)[packet];
  if (place + kVector <= chunks.numel) {
    Values x = {};
    if (add) {
      x = *reinterpret_cast<const Values*>(out + place);
    }
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const float value = to_float(in.values[v]);
      x.values[v] = add ? x.values[v] + value : value;
    }
    *reinterpret_cast<Values*>(out + place) = x;
    return;
  }
  for (int v = 0; v < kVector && place + v < chunks.numel; ++v) {
    const float value = to_float(in.values[v]);
    out[place + v] = add ? out[place + v] + value : value;
  }
}

std::int64_t blocks_for(std::int64_t threads) {
  return (threads + kThreads - 1) / kThreads;
}

bool in_packets(std::int64_t chunk, const void* a, const void* b) {
  return chunk % kLane == 0 && is_aligned(a, 16) && is_aligned(b, 16);
}

}  // namespace

int add_with_norms(const AddWithNorms& job, void* stream) {
  const std::int64_t count = (job.numel + job.chunk - 1) / job.chunk;
  return launch(
      in_packets(job.chunk, job.u, job.g) ? norms_kernel<kLane> : norms_kernel<1>,
      (count + kChunksOfBlock - 1) / kChunksOfBlock, kThreads,
      kChunksOfBlock * kRow * sizeof(float), stream, job.u, job.g, job.add, job.numel, job.chunk,
      job.norms);
}

int take_chunks(const TakeChunks& job, void* stream) {
  const bool packets = in_packets(job.chunks.chunk, job.u, job.wire);
  const std::int64_t numbers = job.chunks.count * job.chunks.chunk;
  return launch(
      packets ? take_kernel<kLane> : take_kernel<1>,
      blocks_for(packets ? numbers / kLane : numbers), kThreads, 0, stream, job.chunks, job.u,
      1.0f / static_cast<float>(job.members), static_cast<float>(job.members),
      static_cast<__half*>(job.wire));
}

int put_chunks(const PutChunks& job, void* stream) {
  const bool packets = in_packets(job.chunks.chunk, job.out, job.wire);
  const std::int64_t numbers = job.chunks.count * job.chunks.chunk;
  return launch(
      packets ? put_kernel<kLane> : put_kernel<1>, blocks_for(packets ? numbers / kLane : numbers),
      kThreads, 0, stream, job.chunks, static_cast<const __half*>(job.wire), job.out, job.add);
}

}  // namespace abtrain::kernels
