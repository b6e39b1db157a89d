#include "ops/cpu/wire_codes.h"

#include <cstring>

#include "kernels/chunk_norm.h"
#include "kernels/wire_scales.h"
#include "ops/cpu/code_blocks.h"

namespace abtrain::ops {

using kernels::kNormLanes;
using kernels::WireCode;

namespace {

constexpr int kChunk = static_cast<int>(kernels::kWireChunk);
constexpr std::int64_t kGrain = 256;  // chunks worth a thread

int count_of(const kernels::WireLayout& layout, std::int64_t chunk) {
  return static_cast<int>(
      std::min<std::int64_t>(kChunk, layout.numel - chunk * kChunk));
}

// Both write one code per byte, replace x with the residual and return the bits
// of the scale. x has kChunk elements: zeros follow the last one.
template <int kBits>
ABT_INLINE std::uint16_t encode_integers(float* x, std::uint8_t* codes) {
  std::int32_t largest = 0;
  for (int i = 0; i < kChunk; ++i) {
    largest = std::max(
        largest, std::bit_cast<std::int32_t>(x[i]) & std::int32_t{0x7FFFFFFF});
  }
  const std::uint16_t bits =
      kernels::integer_scale<kBits>(static_cast<std::uint32_t>(largest));
  const float scale = kernels::scale_value(bits);
  if (!(scale > 0)) {
    std::fill_n(codes, kChunk, std::uint8_t{0});
    for (int i = 0; i < kChunk; ++i) {
      x[i] = kernels::rest_of(x[i], scale, 0);
    }
    return bits;
  }
  for (int i = 0; i < kChunk; ++i) {
    const std::uint32_t code = kernels::integer_code(x[i], scale);
    codes[i] = static_cast<std::uint8_t>(code & ((1 << kBits) - 1));
    x[i] = kernels::rest_of(x[i], scale, kernels::multiple_of<kBits>(code));
  }
  return bits;
}

// Calls use(element, lane) for all elements of a chunk.
template <class Use>
ABT_INLINE void for_lanes(const Use& use) {
  for (int i = 0; i < kChunk; i += kNormLanes) {
    for (int l = 0; l < kNormLanes; ++l) {
      use(i + l, l);
    }
  }
}

ABT_INLINE std::uint16_t
encode_levels(float* x, int count, std::uint8_t* codes) {
  float squares[kNormLanes] = {};
  for_lanes([&](int i, int l)
                ABT_INLINED { squares[l] = std::fma(x[i], x[i], squares[l]); });
  const float cut = kernels::level_cut(kernels::sum_of_lanes(squares), count);
  float products[kNormLanes] = {};
  int threes[kNormLanes] = {};
  for_lanes([&](int i, int l) ABT_INLINED {
    const float magnitude = std::fabs(x[i]);
    const bool above = magnitude > cut;
    products[l] = std::fma(magnitude, kernels::level_of(above), products[l]);
    threes[l] += above ? 1 : 0;
    codes[i] = static_cast<std::uint8_t>(kernels::signed_code(x[i], above));
  });
  const std::uint16_t bits = kernels::level_scale(
      kernels::sum_of_lanes(products),
      count,
      add_by_halves(threes, kNormLanes));
  const float scale = kernels::scale_value(bits);
  for (int i = 0; i < kChunk; ++i) {
    x[i] = kernels::rest_of(x[i], scale, kernels::multiple_of<2>(codes[i]));
  }
  return bits;
}

template <int kBits>
ABT_INLINE void encode_chunk(const kernels::EncodeWire& job, std::int64_t c) {
  constexpr int kWidth = static_cast<int>(kernels::chunk_bytes(kBits));
  const int count = count_of(job.layout, c);
  float* const u = job.u + c * kChunk;
  alignas(64) float scratch[kChunk];
  float* x = u;
  if (count < kChunk) {
    std::copy_n(u, count, scratch);
    std::fill(scratch + count, scratch + kChunk, 0.0f);
    x = scratch;
  }
  alignas(64) std::uint8_t codes[kChunk];
  std::uint16_t bits;
  if constexpr (kBits == 2) {
    bits = encode_levels(x, count, codes);
  } else {
    bits = encode_integers<kBits>(x, codes);
  }
  std::memcpy(job.record + 2 * c, &bits, sizeof(bits));
  alignas(64) std::uint8_t packed[kWidth];
  for (int b = 0; b < kWidth; ++b) {
    std::uint8_t byte = codes[b];
    for (int k = 1; k < 8 / kBits; ++k) {
      byte = static_cast<std::uint8_t>(
          byte | codes[b + k * kWidth] << (k * kBits));
    }
    packed[b] = byte;
  }
  std::copy_n(
      packed,
      kernels::fill_words(std::min(count, kWidth)),
      job.record + kernels::codes_begin(job.layout) + c * kWidth);
  if (x != u) {
    std::copy_n(x, count, u);
  }
}

template <int kBits>
ABT_INLINE void decode_chunk(const kernels::DecodeWire& job, std::int64_t c) {
  constexpr int kWidth = static_cast<int>(kernels::chunk_bytes(kBits));
  const int count = count_of(job.layout, c);
  std::uint16_t bits;
  std::memcpy(&bits, job.record + 2 * c, sizeof(bits));
  const float scale = kernels::scale_value(bits);
  const std::uint8_t* packed =
      job.record + kernels::codes_begin(job.layout) + c * kWidth;
  alignas(64) std::uint8_t few[kWidth] = {};
  if (count < kWidth) {
    std::copy_n(packed, count, few);
    packed = few;
  }
  alignas(64) float values[kChunk];
  for (int k = 0; k < 8 / kBits; ++k) {
    for (int b = 0; b < kWidth; ++b) {
      values[k * kWidth + b] =
          scale *
          kernels::multiple_of<kBits>(std::uint32_t{packed[b]} >> (k * kBits));
    }
  }
  float* const out = job.out + c * kChunk;
  if (job.add) {
    for (int i = 0; i < count; ++i) {
      out[i] = kernels::decoded(out[i], job.factor, values[i], true);
    }
  } else {
    for (int i = 0; i < count; ++i) {
      out[i] = kernels::decoded(0, job.factor, values[i], false);
    }
  }
}

template <int kBits>
void encode_chunks(const kernels::EncodeWire& job) {
  const std::int64_t chunks = kernels::wire_chunks(job.layout);
  if (chunks % 2 != 0) {
    std::fill_n(job.record + 2 * chunks, 2, std::uint8_t{0});
  }
  for_blocks(
      chunks,
      [&](std::int64_t c) ABT_INLINED { encode_chunk<kBits>(job, c); },
      kGrain);
}

template <int kBits>
void decode_chunks(const kernels::DecodeWire& job) {
  for_blocks(
      kernels::wire_chunks(job.layout),
      [&](std::int64_t c) ABT_INLINED { decode_chunk<kBits>(job, c); },
      kGrain);
}

}  // namespace

void encode_wire_cpu(const kernels::EncodeWire& job) {
  switch (job.layout.code) {
    case WireCode::Int8:
      return encode_chunks<8>(job);
    case WireCode::Int4:
      return encode_chunks<4>(job);
    case WireCode::Int2:
      return encode_chunks<2>(job);
    case WireCode::Sparse:
      return encode_sparse_cpu(job);
  }
}

void decode_wire_cpu(const kernels::DecodeWire& job) {
  switch (job.layout.code) {
    case WireCode::Int8:
      return decode_chunks<8>(job);
    case WireCode::Int4:
      return decode_chunks<4>(job);
    case WireCode::Int2:
      return decode_chunks<2>(job);
    case WireCode::Sparse:
      return decode_sparse_cpu(job);
  }
}

}  // namespace abtrain::ops
