#include "kernels/blocks/chunks.h"

#include <cmath>

#include "kernels/blocks/chunk_norm.h"
#include "kernels/elements.cuh"
#include "kernels/launch.cuh"

namespace abtrain::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int kLane = 4;                             // lanes (chunk_norm.h) per thread
constexpr int kThreadsOfChunk = kNormLanes / kLane;  // 8
constexpr int kChunksOfBlock = kThreads / kThreadsOfChunk;
// The stride of a row (a chunk's lanes) in shared memory; one extra word puts rows into different
// banks.
constexpr int kRow = kNormLanes + 1;

// Eight threads per chunk read 128 adjacent bytes at a time. `kWide`: all chunks
// are 16-byte aligned.
template <bool kWide>
__global__ void __launch_bounds__(kThreads) norms_kernel(const AddWithNorms job) {
  float* rows = reinterpret_cast<float*>(shared_memory());
  const int row = static_cast<int>(threadIdx.x) / kThreadsOfChunk;
  const int first = static_cast<int>(threadIdx.x) % kThreadsOfChunk * kLane;
  const std::int64_t block = std::int64_t{blockIdx.x} * kChunksOfBlock;
  const std::int64_t begin = (block + row) * job.chunk;
  const std::int64_t left = job.numel - begin;
  const std::int64_t size = left < job.chunk ? left : job.chunk;
  float sums[kLane] = {};
  for (std::int64_t i = first; i < size; i += kNormLanes) {
    float* const u = job.u + begin + i;
    float x[kLane];
    load_first(job.g + begin + i, size - i, kWide, x);
    if (job.add) {
      float old[kLane];
      load_first(u, size - i, kWide, old);
#pragma unroll
      for (int v = 0; v < kLane; ++v) {
        x[v] += old[v];
      }
    }
    store_first(u, size - i, kWide, x);
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      sums[v] = ::fmaf(x[v], x[v], sums[v]);
    }
  }
  for (int v = 0; v < kLane; ++v) {
    rows[row * kRow + first + v] = sums[v];
  }
  __syncthreads();
  const auto mine = static_cast<int>(threadIdx.x);
  if (mine < kChunksOfBlock && (block + mine) * job.chunk < job.numel) {
    job.norms[block + mine] = sum_of_lanes(rows + mine * kRow);
  }
}

// Returns the index in u of element `at` of the wire.
__device__ std::int64_t place_of(const Chunks& chunks, unsigned at) {
  const auto chunk = static_cast<unsigned>(chunks.chunk);
  const unsigned j = at / chunk;
  return chunks.indices[j] * chunks.chunk + (at - j * chunk);
}

// Each thread processes kVector elements of the wire.
template <int kVector>
__global__ void __launch_bounds__(kThreads)
    take_kernel(Chunks chunks, float* u, float scale, float members, __half* wire) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kVector;
  if (at >= chunks.count * chunks.chunk) {
    return;
  }
  const std::int64_t place = place_of(chunks, static_cast<unsigned>(at));
  const std::int64_t left = chunks.numel - place;
  float x[kVector];
  load_first(u + place, left, true, x);
  __half out[kVector];
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    store(out[v], x[v] * scale);
    x[v] = ::fmaf(-members, to_float(out[v]), x[v]);
  }
  store_first(wire + at, kVector, true, out);
  store_first(u + place, left, true, x);
}

template <int kVector>
__global__ void __launch_bounds__(kThreads)
    put_kernel(Chunks chunks, const __half* wire, float* out, bool add) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kVector;
  if (at >= chunks.count * chunks.chunk) {
    return;
  }
  const std::int64_t place = place_of(chunks, static_cast<unsigned>(at));
  const std::int64_t left = chunks.numel - place;
  __half in[kVector];
  load_first(wire + at, kVector, true, in);
  float x[kVector] = {};
  if (add) {
    load_first(out + place, left, true, x);
  }
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    const float value = to_float(in[v]);
    x[v] = add ? x[v] + value : value;
  }
  store_first(out + place, left, true, x);
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
      in_packets(job.chunk, job.u, job.g) ? norms_kernel<true> : norms_kernel<false>,
      (count + kChunksOfBlock - 1) / kChunksOfBlock, kThreads,
      kChunksOfBlock * kRow * sizeof(float), stream, job);
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
