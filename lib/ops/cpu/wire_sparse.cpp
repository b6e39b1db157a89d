#include <cstring>
#include <limits>

#include "kernels/blocks/chunk_norm.h"
#include "kernels/codes/wire_sparse.h"
#include "ops/cpu/code_blocks.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

constexpr int kChunk = static_cast<int>(kSparseChunk);
constexpr std::int64_t kGrain = 8;  // chunks worth a thread

// Returns how many keys of a chunk are above `key`. Four counters keep a vector unit busy.
ABT_INLINE int count_above(const std::int16_t* keys, std::int16_t key) {
  constexpr int kCounters = 4;
  constexpr int kPart = kChunk / kCounters;
  std::int16_t counts[kCounters] = {};
  for (int i = 0; i < kPart; ++i) {
    for (int k = 0; k < kCounters; ++k) {
      counts[k] = static_cast<std::int16_t>(counts[k] + (keys[i + k * kPart] > key ? 1 : 0));
    }
  }
  return counts[0] + counts[1] + counts[2] + counts[3];
}

// Returns a key that exactly k keys reach or exceed, or else the k-th largest key. Works bit by
// bit, in at most sixteen passes over keys that lie in the first-level cache.
ABT_INLINE std::int16_t find_key(const std::int16_t* keys, int k) {
  int key = std::numeric_limits<std::int16_t>::min();
  for (int bit = 15; bit >= 0; --bit) {
    const int tried = key + (1 << bit);
    const int reach = count_above(keys, static_cast<std::int16_t>(tried - 1));
    key = reach >= k ? tried : key;
    if (reach == k) {
      break;
    }
  }
  return static_cast<std::int16_t>(key);
}

// Writes the indices of the elements that are sent, ascending. The 31 bits of a magnitude are split
// into two keys: the high 16 bits and the low 15.
ABT_INLINE void choose(const float* u, int count, int sent, std::uint16_t* places) {
  alignas(64) std::int16_t highs[kChunk];
  alignas(64) std::int16_t lows[kChunk];
  alignas(64) std::uint8_t marks[kChunk];
  constexpr int kHalf = 1 << 15;
  for (int i = 0; i < count; ++i) {
    highs[i] = static_cast<std::int16_t>(static_cast<int>(magnitude_bits(u[i]) >> 15) - kHalf);
  }
  // Padding beyond the end counts as zeros, which rank after all existing elements.
  std::fill(highs + count, highs + kChunk, static_cast<std::int16_t>(-kHalf));
  const std::int16_t high = find_key(highs, sent);
  const int left = sent - count_above(highs, high);
  int equal = 0;
  for (int i = 0; i < count; ++i) {
    const bool same = highs[i] == high;
    equal += same ? 1 : 0;
    lows[i] = static_cast<std::int16_t>(same ? static_cast<int>(bits_of(u[i]) & (kHalf - 1)) : -1);
  }
  std::fill(lows + count, lows + kChunk, std::int16_t{-1});
  // If all elements with this high key are sent, every low key qualifies.
  const std::int16_t low = equal > left ? find_key(lows, left) : std::int16_t{0};
  int ties = equal > left ? left - count_above(lows, low) : left;
  for (int i = 0; i < kChunk; ++i) {
    const int above = highs[i] > high || lows[i] > low ? 1 : 0;
    marks[i] = static_cast<std::uint8_t>(above + (lows[i] == low ? 2 : 0));
  }
  int found = 0;
  for (int i = 0; found < sent; i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, marks + i, sizeof(eight));
    for (; eight != 0 && found < sent; eight &= eight - 1) {
      const int bit = std::countr_zero(eight);
      if (bit % 8 == 0 || ties-- > 0) {
        places[found++] = static_cast<std::uint16_t>(i + bit / 8);
      }
    }
  }
}

// The scales of the two levels (bf16), and the cut: the magnitude above which an element is sent as
// the upper level.
struct Levels {
  float cut;
  std::uint16_t bits[2];
};
ABT_INLINE Levels find_levels(const float* values, int sent) {
  float lanes[2][kNormLanes] = {};
  for (int i = 0; i < sent; ++i) {
    lanes[0][i % kNormLanes] += std::fabs(values[i]);
  }
  Levels levels;
  levels.cut = sum_of_lanes(lanes[0]) / static_cast<float>(sent);
  std::fill_n(lanes[0], kNormLanes, 0.0f);
  int counts[2] = {};
  for (int i = 0; i < sent; ++i) {
    const float magnitude = std::fabs(values[i]);
    const int upper = magnitude > levels.cut ? 1 : 0;
    lanes[upper][i % kNormLanes] += magnitude;
    ++counts[upper];
  }
  for (int k = 0; k < 2; ++k) {
    levels.bits[k] = mean_scale(sum_of_lanes(lanes[k]), counts[k]);
  }
  return levels;
}

ABT_INLINE void encode_chunk(const EncodeWire& job, std::int64_t c) {
  const SparseChunk chunk = sparse_chunk(job.layout, c);
  float* const u = job.u + chunk.begin;
  std::uint16_t places[kChunk];
  float values[kChunk];
  choose(u, chunk.count, chunk.sent, places);
  for (int i = 0; i < chunk.sent; ++i) {
    values[i] = u[places[i]];
  }
  const Levels levels = find_levels(values, chunk.sent);
  std::memcpy(job.record + chunk.scales, levels.bits, sizeof(levels.bits));
  const float scales[2] = {scale_value(levels.bits[0]), scale_value(levels.bits[1])};
  std::uint8_t* to = job.record + chunk.codes;
  for (int first = 0; first < chunk.sent; first += kGroupNumbers) {
    const std::uint64_t group =
        encode_group(values, places, first, chunk.sent, levels.cut, scales, u);
    std::memcpy(to, &group, kGroupBytes);
    to += kGroupBytes;
  }
}

ABT_INLINE void decode_chunk(const DecodeWire& job, std::int64_t c) {
  const SparseChunk chunk = sparse_chunk(job.layout, c);
  float* const out = job.out + chunk.begin;
  if (!job.add) {
    std::fill_n(out, chunk.count, 0.0f);
  }
  std::uint16_t bits[2];
  std::memcpy(bits, job.record + chunk.scales, sizeof(bits));
  const float scales[2] = {scale_value(bits[0]), scale_value(bits[1])};
  const std::uint8_t* from = job.record + chunk.codes;
  for (int first = 0; first < chunk.sent; first += kGroupNumbers) {
    std::uint64_t group = 0;
    std::memcpy(&group, from, kGroupBytes);
    from += kGroupBytes;
    decode_group(group, first, chunk, scales, job, out);
  }
}

}  // namespace

void encode_sparse_on_host(const EncodeWire& job) {
  // Zeros fill up the last word of the codes.
  const std::int64_t chunks = wire_chunks(job.layout);
  const std::int64_t end =
      sparse_chunk(job.layout, chunks - 1).codes + sparse_bytes(job.layout.sent_of_last);
  std::fill(job.record + end, job.record + fill_words(end), std::uint8_t{0});
  for_blocks(
      chunks, [&](std::int64_t c) ABT_INLINED { encode_chunk(job, c); }, kGrain);
}

void decode_sparse_on_host(const DecodeWire& job) {
  for_blocks(
      wire_chunks(job.layout), [&](std::int64_t c) ABT_INLINED { decode_chunk(job, c); }, kGrain);
}

}  // namespace abtrain::kernels
