#include "kernels/wire_codes.h"

#include "kernels/chunk_norm.h"
#include "kernels/code_blocks.cuh"
#include "kernels/wire_scales.h"
#include "kernels/wire_sparse.h"

namespace abtrain::kernels {

namespace {

// Eight threads process a chunk. Each has four adjacent lanes of
// kernels/chunk_norm.h: a quad of elements in each run of kNormLanes.
constexpr int kLane = 4;
constexpr int kThreadsOfChunk = kNormLanes / kLane;
constexpr int kChunksOfBlock = kThreads / kThreadsOfChunk;
constexpr int kQuads = static_cast<int>(kWireChunk) / kNormLanes;
// The stride of a row of lanes in shared memory; one extra word puts the rows
// into different banks.
constexpr int kRow = kNormLanes + 1;

struct Place {
  std::int64_t chunk;
  std::int64_t begin;  // index in u of the chunk's first element
  int count;           // elements in the chunk; 0 where there is no such chunk
  int row;             // of the chunk in the thread block
  int lane;            // the thread's first lane

  // How many numbers there are from the first one of this quad on.
  __device__ int left(int quad) const {
    return count - quad * kNormLanes - lane;
  }
};

__device__ Place place_of(std::int64_t numel) {
  const auto t = static_cast<int>(threadIdx.x);
  const int row = t / kThreadsOfChunk;
  const std::int64_t chunk = std::int64_t{blockIdx.x} * kChunksOfBlock + row;
  const std::int64_t left = numel - chunk * kWireChunk;
  return {
      chunk,
      chunk * kWireChunk,
      static_cast<int>(
          left < 0            ? 0
          : left < kWireChunk ? left
                              : kWireChunk),
      row,
      t % kThreadsOfChunk * kLane};
}

using Quad = Packet<float, kLane>;

// The elements that do not exist are 0.
__device__ void
load_quad(const float* from, int left, bool wide, float (&x)[kLane]) {
  if (wide && left >= kLane) {
    const Quad quad = *reinterpret_cast<const Quad*>(from);
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      x[v] = quad.values[v];
    }
    return;
  }
#pragma unroll
  for (int v = 0; v < kLane; ++v) {
    x[v] = v < left ? from[v] : 0.0f;
  }
}
__device__ void
store_quad(float* to, int left, bool wide, const float (&x)[kLane]) {
  if (wide && left >= kLane) {
    *reinterpret_cast<Quad*>(to) = Quad{{x[0], x[1], x[2], x[3]}};
    return;
  }
#pragma unroll
  for (int v = 0; v < kLane; ++v) {
    if (v < left) {
      to[v] = x[v];
    }
  }
}

// The code of element v of a quad is in byte v of word quad % kWords.
template <int kBits>
constexpr int kWords = kBits / 2;
template <int kBits>
__device__ constexpr int bit_of(int quad, int v) {
  return 8 * v + kBits * (quad / kWords<kBits>);
}

// Both return the bits of the chunk's scale. All threads of the block must call
// them; they need shared memory.
template <int kBits>
__device__ std::uint16_t encode_integers(
    const float (&x)[kQuads][kLane],
    const Place& at,
    std::uint32_t (&codes)[kQuads][kLane]) {
  auto* const largest = reinterpret_cast<std::uint32_t*>(shared_memory());
  const auto keep = [](std::uint32_t& most, std::uint32_t other) {
    most = most < other ? other : most;
  };
  std::uint32_t most = 0;
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      keep(most, magnitude_bits(x[q][v]));
    }
  }
  largest[threadIdx.x] = most;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kThreadsOfChunk; ++i) {
    keep(most, largest[at.row * kThreadsOfChunk + i]);
  }
  const std::uint16_t bits = integer_scale<kBits>(most);
  const float scale = scale_value(bits);
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      codes[q][v] = scale > 0 ? integer_code(x[q][v], scale) : 0u;
    }
  }
  return bits;
}

// The sum of the chunk's lanes; each of its threads gets it.
__device__ float
sum_of_chunk(const float (&sums)[kLane], const Place& at, float* rows) {
  float* const row = rows + at.row * kRow;
#pragma unroll
  for (int v = 0; v < kLane; ++v) {
    row[at.lane + v] = sums[v];
  }
  __syncthreads();
  float lanes[kNormLanes / 2];
#pragma unroll
  for (int l = 0; l < kNormLanes / 2; ++l) {
    lanes[l] = row[l] + row[l + kNormLanes / 2];
  }
#pragma unroll
  for (int half = kNormLanes / 4; half > 0; half /= 2) {
#pragma unroll
    for (int l = 0; l < kNormLanes / 4; ++l) {
      if (l < half) {
        lanes[l] += lanes[l + half];
      }
    }
  }
  return lanes[0];
}

struct LevelsShared {
  float squares[kChunksOfBlock * kRow];
  float products[kChunksOfBlock * kRow];
  int threes[kThreads];
};

__device__ std::uint16_t encode_levels(
    const float (&x)[kQuads][kLane],
    const Place& at,
    std::uint32_t (&codes)[kQuads][kLane]) {
  auto& shared = *reinterpret_cast<LevelsShared*>(shared_memory());
  float sums[kLane] = {};
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      sums[v] = ::fmaf(x[q][v], x[q][v], sums[v]);
    }
  }
  const float cut = level_cut(sum_of_chunk(sums, at, shared.squares), at.count);
  float products[kLane] = {};
  int threes = 0;
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      const float magnitude = ::fabsf(x[q][v]);
      const bool above = magnitude > cut;
      products[v] = ::fmaf(magnitude, level_of(above), products[v]);
      threes += above ? 1 : 0;
      codes[q][v] = signed_code(x[q][v], above);
    }
  }
  shared.threes[threadIdx.x] = threes;
  const float sum = sum_of_chunk(products, at, shared.products);
  threes = 0;
#pragma unroll
  for (int i = 0; i < kThreadsOfChunk; ++i) {
    threes += shared.threes[at.row * kThreadsOfChunk + i];
  }
  return level_scale(sum, at.count, threes);
}

template <int kBits>
__global__ void __launch_bounds__(kThreads)
    encode_kernel(const EncodeWire job) {
  const Place at = place_of(job.layout.numel);
  float* const u = job.u + at.begin + at.lane;
  const bool wide = is_wide(job.u);
  float x[kQuads][kLane];
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    load_quad(u + q * kNormLanes, at.left(q), wide, x[q]);
  }
  std::uint32_t codes[kQuads][kLane];
  std::uint16_t bits;
  if constexpr (kBits == 2) {
    bits = encode_levels(x, at, codes);
  } else {
    bits = encode_integers<kBits>(x, at, codes);
  }
  if (at.count == 0) {
    return;
  }
  const float scale = scale_value(bits);
  std::uint32_t words[kWords<kBits>] = {};
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      constexpr std::uint32_t kMask = (1u << kBits) - 1;
      words[q % kWords<kBits>] |= (codes[q][v] & kMask) << bit_of<kBits>(q, v);
      x[q][v] = rest_of(x[q][v], scale, multiple_of<kBits>(codes[q][v]));
    }
    store_quad(u + q * kNormLanes, at.left(q), wide, x[q]);
  }
  std::uint8_t* const to = job.record + codes_begin(job.layout) +
                           at.chunk * chunk_bytes(kBits) + at.lane;
#pragma unroll
  for (int w = 0; w < kWords<kBits>; ++w) {
    if (at.left(w) > 0) {
      *reinterpret_cast<std::uint32_t*>(to + w * kNormLanes) = words[w];
    }
  }
  if (at.lane == 0) {
    auto* const scales = reinterpret_cast<std::uint16_t*>(job.record);
    scales[at.chunk] = bits;
    if (at.chunk % 2 == 0 && at.chunk + 1 == wire_chunks(job.layout)) {
      scales[at.chunk + 1] = 0;
    }
  }
}

template <int kBits>
__global__ void __launch_bounds__(kThreads)
    decode_kernel(const DecodeWire job) {
  const Place at = place_of(job.layout.numel);
  if (at.count == 0) {
    return;
  }
  const float scale =
      scale_value(reinterpret_cast<const std::uint16_t*>(job.record)[at.chunk]);
  const std::uint8_t* const from = job.record + codes_begin(job.layout) +
                                   at.chunk * chunk_bytes(kBits) + at.lane;
  std::uint32_t words[kWords<kBits>] = {};
#pragma unroll
  for (int w = 0; w < kWords<kBits>; ++w) {
    if (at.left(w) > 0) {
      words[w] = *reinterpret_cast<const std::uint32_t*>(from + w * kNormLanes);
    }
  }
  float* const out = job.out + at.begin + at.lane;
  const bool wide = is_wide(job.out);
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    float x[kLane] = {};
    if (job.add) {
      load_quad(out + q * kNormLanes, at.left(q), wide, x);
    }
#pragma unroll
    for (int v = 0; v < kLane; ++v) {
      const std::uint32_t code =
          words[q % kWords<kBits>] >> bit_of<kBits>(q, v);
      x[v] =
          decoded(x[v], job.factor, scale * multiple_of<kBits>(code), job.add);
    }
    store_quad(out + q * kNormLanes, at.left(q), wide, x);
  }
}

template <class Job>
int launch_chunks(
    void (*kernel)(Job),
    std::size_t shared_bytes,
    const Job& job,
    void* stream) {
  return launch(
      kernel,
      (wire_chunks(job.layout) + kChunksOfBlock - 1) / kChunksOfBlock,
      kThreads,
      shared_bytes,
      stream,
      job);
}

}  // namespace

int encode_wire(const EncodeWire& job, void* stream) {
  constexpr std::size_t kLargest = kThreads * sizeof(std::uint32_t);
  switch (job.layout.code) {
    case WireCode::Int8:
      return launch_chunks(encode_kernel<8>, kLargest, job, stream);
    case WireCode::Int4:
      return launch_chunks(encode_kernel<4>, kLargest, job, stream);
    case WireCode::Int2:
      return launch_chunks(encode_kernel<2>, sizeof(LevelsShared), job, stream);
    case WireCode::Sparse:
      break;
  }
  return encode_sparse(job, stream);
}

int decode_wire(const DecodeWire& job, void* stream) {
  switch (job.layout.code) {
    case WireCode::Int8:
      return launch_chunks(decode_kernel<8>, 0, job, stream);
    case WireCode::Int4:
      return launch_chunks(decode_kernel<4>, 0, job, stream);
    case WireCode::Int2:
      return launch_chunks(decode_kernel<2>, 0, job, stream);
    case WireCode::Sparse:
      break;
  }
  return decode_sparse(job, stream);
}

}  // namespace abtrain::kernels
