#include "kernels/codes/wire_sparse.h"

#include "kernels/blocks/chunk_norm.h"
#include "kernels/code_blocks.cuh"

namespace abtrain::kernels {

namespace {

// A thread block processes a chunk. The chunk's elements are spread over the threads as in a code
// block (code_blocks.cuh).
static_assert(kSparseChunk == kBlock);

constexpr int kRun = 16;  // threads in a run; one thread adds up a run's counts
constexpr int kRuns = kThreads / kRun;

struct Shared {
  std::uint64_t counts[kThreads + kRuns];  // each run has one word of padding
  std::uint64_t sums[kRuns];
  std::uint32_t bins[kThreads];
  std::uint32_t digit, left;
  float lanes[2][kNormLanes];
  int uppers[kNormLanes];
  float cut;
  std::uint16_t scales[2];
};
// In shared memory, this struct is followed by the elements that are sent, then by their indices.
std::size_t shared_bytes(int sent) {
  return sizeof(Shared) + static_cast<std::size_t>(sent) * (sizeof(float) + sizeof(std::uint16_t));
}

// add_counts() returns the sum of `own` over the threads before this one, and over all threads. All
// threads of the block must call it.
struct Sums {
  std::uint64_t before = 0;
  std::uint64_t all = 0;
};
__device__ Sums add_counts(std::uint64_t own, Shared& shared) {
  const auto t = static_cast<int>(threadIdx.x);
  std::uint64_t* const place = shared.counts + t + t / kRun;
  *place = own;
  __syncthreads();
  if (t < kRuns) {
    std::uint64_t* const run = shared.counts + t * (kRun + 1);
    std::uint64_t sum = 0;
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const std::uint64_t count = run[i];
      run[i] = sum;
      sum += count;
    }
    shared.sums[t] = sum;
  }
  __syncthreads();
  Sums result;
  result.before = *place;
#pragma unroll
  for (int i = 0; i < kRuns; ++i) {
    const std::uint64_t sum = shared.sums[i];
    result.before += i < t / kRun ? sum : 0;
    result.all += sum;
  }
  return result;
}

// The smallest of the k largest magnitudes: its bits, and how many of these k have the same bits.
struct Smallest {
  std::uint32_t bits = 0;
  std::uint32_t left = 0;
};

// Finds one eight-bit digit after another, from the highest on, by counting the magnitudes that
// agree in all higher digits.
__device__ Smallest find_smallest(const float (&x)[kRounds][kEight], int k, Shared& shared) {
  const auto t = static_cast<int>(threadIdx.x);
  Smallest found;
  found.left = static_cast<std::uint32_t>(k);
  shared.bins[t] = 0;
  __syncthreads();
  for (int shift = 24; shift >= 0; shift -= 8) {
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
#pragma unroll
      for (int i = 0; i < kEight; ++i) {
        const std::uint32_t digit = (magnitude_bits(x[r][i]) ^ found.bits) >> shift;
        if (digit < kThreads) {
          increment(shared.bins + digit);
        }
      }
    }
    __syncthreads();
    // Each thread handles one digit, the first thread the largest.
    const int digit = kThreads - 1 - t;
    const std::uint32_t own = shared.bins[digit];
    shared.bins[digit] = 0;
    const std::uint64_t before = add_counts(own, shared).before;
    if (before < found.left && found.left <= before + own) {
      shared.digit = static_cast<std::uint32_t>(digit);
      shared.left = found.left - static_cast<std::uint32_t>(before);
    }
    __syncthreads();
    found.bits |= shared.digit << shift;
    found.left = shared.left;
  }
  return found;
}

// Copies the elements that are sent, and their indices, in ascending order of the indices. If
// elements tie for the last places, those with the lowest indices are sent.
__device__ void collect(
    const float (&x)[kRounds][kEight], const Smallest& smallest, Shared& shared, float* values,
    std::uint16_t* indices) {
  // Four counts in one word: for each round, how many magnitudes are above the smallest one that is
  // sent, and how many equal it.
  std::uint64_t own = 0;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      const std::uint32_t bits = magnitude_bits(x[r][i]);
      own += bits > smallest.bits    ? std::uint64_t{1} << (32 * r)
             : bits == smallest.bits ? std::uint64_t{1} << (32 * r + 16)
                                     : 0;
    }
  }
  const Sums sums = add_counts(own, shared);
  std::uint64_t earlier = 0;  // counts in the rounds before r, of all threads
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const std::uint64_t counts = (sums.before >> (32 * r)) + earlier;
    auto larger = static_cast<std::uint32_t>(counts & 0xFFFF);
    auto equal = static_cast<std::uint32_t>(counts >> 16 & 0xFFFF);
    earlier += sums.all & 0xFFFFFFFFu;
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      const std::uint32_t bits = magnitude_bits(x[r][i]);
      const bool is_equal = bits == smallest.bits;
      if (bits > smallest.bits || (is_equal && equal < smallest.left)) {
        const std::uint32_t place = larger + (equal < smallest.left ? equal : smallest.left);
        values[place] = x[r][i];
        indices[place] = static_cast<std::uint16_t>(first_of(r) + i);
      }
      larger += bits > smallest.bits ? 1u : 0u;
      equal += is_equal ? 1u : 0u;
    }
  }
  __syncthreads();
}

// Writes the cut (the magnitude above which an element has the upper level) and the scales of the
// two levels to shared memory.
__device__ void find_levels(const float* values, int sent, Shared& shared) {
  const auto t = static_cast<int>(threadIdx.x);
  if (t < kNormLanes) {
    float sum = 0;
    for (int i = t; i < sent; i += kNormLanes) {
      sum += ::fabsf(values[i]);
    }
    shared.lanes[0][t] = sum;
  }
  __syncthreads();
  if (t == 0) {
    shared.cut = divide(sum_of_lanes(shared.lanes[0]), static_cast<float>(sent));
  }
  __syncthreads();
  if (t < kNormLanes) {
    float sums[2] = {};
    int uppers = 0;
    for (int i = t; i < sent; i += kNormLanes) {
      const float magnitude = ::fabsf(values[i]);
      const bool upper = magnitude > shared.cut;
      sums[0] += upper ? 0.0f : magnitude;
      sums[1] += upper ? magnitude : 0.0f;
      uppers += upper ? 1 : 0;
    }
    shared.lanes[0][t] = sums[0];
    shared.lanes[1][t] = sums[1];
    shared.uppers[t] = uppers;
  }
  __syncthreads();
  if (t < 2) {
    int uppers = 0;
    for (int l = 0; l < kNormLanes; ++l) {
      uppers += shared.uppers[l];
    }
    shared.scales[t] = mean_scale(sum_of_lanes(shared.lanes[t]), t == 1 ? uppers : sent - uppers);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) encode_sparse_kernel(const EncodeWire job) {
  auto& shared = *reinterpret_cast<Shared*>(shared_memory());
  const SparseChunk at = sparse_chunk(job.layout, blockIdx.x);
  auto* const values = reinterpret_cast<float*>(&shared + 1);
  auto* const indices = reinterpret_cast<std::uint16_t*>(values + at.sent);
  float* const u = job.u + at.begin;
  // Padding beyond the end counts as zeros, which rank after all existing elements.
  float x[kRounds][kEight];
  load_block(u, at.count, x);
  collect(x, find_smallest(x, at.sent, shared), shared, values, indices);
  find_levels(values, at.sent, shared);

  const auto t = static_cast<int>(threadIdx.x);
  const float levels[2] = {scale_value(shared.scales[0]), scale_value(shared.scales[1])};
  for (int g = t; g * kGroupNumbers < at.sent; g += kThreads) {
    const std::uint64_t group =
        encode_group(values, indices, g * kGroupNumbers, at.sent, shared.cut, levels, u);
    std::uint8_t* const to = job.record + at.codes + g * kGroupBytes;
    for (int b = 0; b < kGroupBytes; ++b) {
      to[b] = static_cast<std::uint8_t>(group >> (8 * b));
    }
  }
  if (t == 0) {
    auto* const scales = reinterpret_cast<std::uint16_t*>(job.record + at.scales);
    scales[0] = shared.scales[0];
    scales[1] = shared.scales[1];
    const std::int64_t end = at.codes + sparse_bytes(at.sent);
    for (std::int64_t b = end; at.last && b < fill_words(end); ++b) {
      job.record[b] = 0;
    }
  }
}

// Must be launched with shared memory, because it has a barrier (launch.cuh).
__global__ void __launch_bounds__(kThreads) decode_sparse_kernel(const DecodeWire job) {
  const SparseChunk at = sparse_chunk(job.layout, blockIdx.x);
  const auto t = static_cast<int>(threadIdx.x);
  float* const out = job.out + at.begin;
  if (!job.add) {
    const bool wide = is_aligned(out, 16);
    const float zeros[kEight] = {};
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      store_first(out + first_of(r), at.count - first_of(r), wide, zeros);
    }
    __syncthreads();
  }
  const auto* const scales = reinterpret_cast<const std::uint16_t*>(job.record + at.scales);
  const float levels[2] = {scale_value(scales[0]), scale_value(scales[1])};
  for (int g = t; g * kGroupNumbers < at.sent; g += kThreads) {
    const std::uint8_t* const from = job.record + at.codes + g * kGroupBytes;
    std::uint64_t group = 0;
    for (int b = 0; b < kGroupBytes; ++b) {
      group |= std::uint64_t{from[b]} << (8 * b);
    }
    decode_group(group, g * kGroupNumbers, at, levels, job, out);
  }
}

}  // namespace

int encode_sparse(const EncodeWire& job, void* stream) {
  const int most = job.layout.numel > kSparseChunk ? job.layout.sent : job.layout.sent_of_last;
  return launch(
      encode_sparse_kernel, wire_chunks(job.layout), kThreads, shared_bytes(most), stream, job);
}

int decode_sparse(const DecodeWire& job, void* stream) {
  return launch(
      decode_sparse_kernel, wire_chunks(job.layout), kThreads, sizeof(float), stream, job);
}

}  // namespace abtrain::kernels
