#include <cstring>
#include <functional>

#include "kernels/chunk_norm.h"
#include "kernels/wire_scales.h"
#include "ops/cpu/code_blocks.h"
#include "ops/cpu/wire_codes.h"

namespace abtrain::ops {

using kernels::kGroupBytes;
using kernels::kGroupNumbers;
using kernels::kNormLanes;

namespace {

constexpr int kChunk = static_cast<int>(kernels::kSparseChunk);
constexpr std::int64_t kGrain = 8;  // chunks worth a thread

struct SparseChunk {
  std::int64_t begin;  // index in u of its first element
  int count;
  int sent;
  std::int64_t scales;  // where they are in the record
  std::int64_t codes;
};

SparseChunk chunk_of(const kernels::WireLayout& layout, std::int64_t chunk) {
  const std::int64_t begin = chunk * kChunk;
  const std::int64_t left = layout.numel - begin;
  const bool last = left <= kChunk;
  return {
      begin,
      static_cast<int>(last ? left : kChunk),
      last ? layout.sent_of_last : layout.sent,
      4 * chunk,
      kernels::codes_begin(layout) +
          chunk * kernels::sparse_bytes(layout.sent)};
}

// The largest key that at least `sent` keys reach, bit by bit: fifteen passes
// over keys that lie in the first-level cache.
ABT_INLINE std::int16_t smallest_key(const std::int16_t* keys, int sent) {
  std::int16_t smallest = 0;
  for (int bit = 14; bit >= 0; --bit) {
    const auto tried = static_cast<std::int16_t>(smallest | 1 << bit);
    std::int16_t reach = 0;
    for (int i = 0; i < kChunk; ++i) {
      reach = static_cast<std::int16_t>(reach + (keys[i] >= tried ? 1 : 0));
    }
    smallest = reach >= sent ? tried : smallest;
  }
  return smallest;
}

// Writes where keys reach `smallest`, ascending; returns how many do.
ABT_INLINE int find_keys(
    const std::int16_t* keys,
    std::int16_t smallest,
    std::uint16_t* places) {
  alignas(64) std::uint8_t reached[kChunk];
  for (int i = 0; i < kChunk; ++i) {
    reached[i] = keys[i] >= smallest ? 1 : 0;
  }
  int found = 0;
  for (int i = 0; i < kChunk; i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, reached + i, sizeof(eight));
    for (; eight != 0; eight &= eight - 1) {
      places[found++] =
          static_cast<std::uint16_t>(i + std::countr_zero(eight) / 8);
    }
  }
  return found;
}

// Of `found` candidates keeps the `sent` largest ones, the first ones among
// equals. Only those whose key is the smallest one may be too many; the low 16
// bits tell them apart.
void keep_largest(
    const float* u,
    const std::int16_t* keys,
    std::int16_t smallest,
    int found,
    int sent,
    std::uint16_t* places) {
  const auto low_bits = [u](std::uint16_t place) {
    return static_cast<std::uint16_t>(kernels::float_bits(u[place]));
  };
  std::uint16_t lows[kChunk] = {};
  int equal = 0;
  for (int i = 0; i < found; ++i) {
    if (keys[places[i]] == smallest) {
      lows[equal++] = low_bits(places[i]);
    }
  }
  const int wanted = sent - (found - equal);  // at least 1
  std::uint16_t* const last = lows + wanted - 1;
  std::nth_element(lows, last, lows + equal, std::greater<>());
  const std::uint16_t cut = *last;
  auto ties = wanted - std::count_if(lows, last, [cut](std::uint16_t low) {
                return low > cut;
              });
  int kept = 0;
  for (int i = 0; i < found; ++i) {
    const std::uint16_t place = places[i];
    const bool larger = keys[place] > smallest || low_bits(place) > cut;
    if (larger || (low_bits(place) == cut && ties-- > 0)) {
      places[kept++] = place;
    }
  }
}

// Writes the indices of the elements that are sent, ascending.
ABT_INLINE void
choose(const float* u, int count, int sent, std::uint16_t* places) {
  // The high bits of the magnitudes; -1 where there is no element.
  alignas(64) std::int16_t keys[kChunk];
  for (int i = 0; i < count; ++i) {
    keys[i] = static_cast<std::int16_t>(kernels::magnitude_bits(u[i]) >> 16);
  }
  std::fill(keys + count, keys + kChunk, std::int16_t{-1});
  const std::int16_t smallest = smallest_key(keys, sent);
  const int found = find_keys(keys, smallest, places);
  if (found > sent) {
    keep_largest(u, keys, smallest, found, sent, places);
  }
}

// The levels of what is sent, and the magnitude above which the upper one
// stands for it.
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
  levels.cut = kernels::sum_of_lanes(lanes[0]) / static_cast<float>(sent);
  std::fill_n(lanes[0], kNormLanes, 0.0f);
  int counts[2] = {};
  for (int i = 0; i < sent; ++i) {
    const float magnitude = std::fabs(values[i]);
    const int upper = magnitude > levels.cut ? 1 : 0;
    lanes[upper][i % kNormLanes] += magnitude;
    ++counts[upper];
  }
  for (int k = 0; k < 2; ++k) {
    levels.bits[k] =
        kernels::mean_scale(kernels::sum_of_lanes(lanes[k]), counts[k]);
  }
  return levels;
}

ABT_INLINE void encode_chunk(const kernels::EncodeWire& job, std::int64_t c) {
  const SparseChunk chunk = chunk_of(job.layout, c);
  float* const u = job.u + chunk.begin;
  std::uint16_t places[kChunk];
  float values[kChunk];
  choose(u, chunk.count, chunk.sent, places);
  for (int i = 0; i < chunk.sent; ++i) {
    values[i] = u[places[i]];
  }
  const Levels levels = find_levels(values, chunk.sent);
  std::memcpy(job.record + chunk.scales, levels.bits, sizeof(levels.bits));
  const float scales[2] = {
      kernels::scale_value(levels.bits[0]),
      kernels::scale_value(levels.bits[1])};
  std::uint8_t* to = job.record + chunk.codes;
  for (int first = 0; first < chunk.sent; first += kGroupNumbers) {
    std::uint64_t group = 0;
    for (int j = 0; j < std::min(kGroupNumbers, chunk.sent - first); ++j) {
      const float x = values[first + j];
      const std::uint16_t place = places[first + j];
      const bool upper = std::fabs(x) > levels.cut;
      const std::uint32_t code = kernels::signed_code(x, upper);
      group |= kernels::group_bits(place, code, j);
      u[place] =
          kernels::with_one_nan(x - kernels::with_sign(scales[upper], code));
    }
    std::memcpy(to, &group, kGroupBytes);
    to += kGroupBytes;
  }
}

ABT_INLINE void decode_chunk(const kernels::DecodeWire& job, std::int64_t c) {
  const SparseChunk chunk = chunk_of(job.layout, c);
  float* const out = job.out + chunk.begin;
  if (!job.add) {
    std::fill_n(out, chunk.count, 0.0f);
  }
  std::uint16_t bits[2];
  std::memcpy(bits, job.record + chunk.scales, sizeof(bits));
  const float scales[2] = {
      kernels::scale_value(bits[0]), kernels::scale_value(bits[1])};
  const std::uint8_t* from = job.record + chunk.codes;
  for (int first = 0; first < chunk.sent; first += kGroupNumbers) {
    std::uint64_t group = 0;
    std::memcpy(&group, from, kGroupBytes);
    from += kGroupBytes;
    for (int j = 0; j < std::min(kGroupNumbers, chunk.sent - first); ++j) {
      const auto index = static_cast<int>(kernels::index_in(group, j));
      const std::uint32_t code = kernels::code_in(group, j);
      // A damaged record must not write elsewhere.
      if (index < chunk.count) {
        out[index] = kernels::decoded(
            out[index],
            job.factor,
            kernels::with_sign(scales[code & 1], code),
            job.add);
      }
    }
  }
}

}  // namespace

void encode_sparse_cpu(const kernels::EncodeWire& job) {
  // The zeros behind the codes.
  const std::int64_t chunks = kernels::wire_chunks(job.layout);
  const std::int64_t end = chunk_of(job.layout, chunks - 1).codes +
                           kernels::sparse_bytes(job.layout.sent_of_last);
  std::fill(
      job.record + end, job.record + kernels::fill_words(end), std::uint8_t{0});
  for_blocks(
      chunks,
      [&](std::int64_t c) ABT_INLINED { encode_chunk(job, c); },
      kGrain);
}

void decode_sparse_cpu(const kernels::DecodeWire& job) {
  for_blocks(
      kernels::wire_chunks(job.layout),
      [&](std::int64_t c) ABT_INLINED { decode_chunk(job, c); },
      kGrain);
}

}  // namespace abtrain::ops
