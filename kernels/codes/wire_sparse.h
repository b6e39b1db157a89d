// The part of wire_codes.h for WireCode::Sparse. The host has its own implementation: it finds the
// smallest magnitude that is sent bit by bit, with vectors of 16-bit keys, whereas a thread block
// finds it in four 8-bit digits.
#pragma once

#include "kernels/codes/wire_codes.h"
#include "kernels/codes/wire_scales.h"

namespace abtrain::kernels {

// A chunk of u and its part of the record.
struct SparseChunk {
  std::int64_t begin;  // index in u of its first element
  int count;
  int sent;
  std::int64_t scales;  // offset in bytes of its scales in the record
  std::int64_t codes;   // offset in bytes of its codes in the record
  bool last;
};

ABT_HOST_DEVICE inline SparseChunk sparse_chunk(const WireLayout& layout, std::int64_t chunk) {
  const std::int64_t begin = chunk * kSparseChunk;
  const std::int64_t left = layout.numel - begin;
  const bool last = left <= kSparseChunk;
  return {
      begin,
      static_cast<int>(last ? left : kSparseChunk),
      last ? layout.sent_of_last : layout.sent,
      4 * chunk,
      codes_begin(layout) + chunk * sparse_bytes(layout.sent),
      last};
}

// Returns the element's level, without a branch, which would often be mispredicted.
ABT_INLINE float level_at(const float (&levels)[2], bool upper) {
  const std::uint32_t mask = all_ones(upper);
  return float_of((bits_of(levels[1]) & mask) | (bits_of(levels[0]) & ~mask));
}

// A chunk sends the elements `values`, `sent` of them, with the indices `places` in the chunk.
// Returns the codes of the group that begins at values[first]. Subtracts the decoded group from u,
// which points to the chunk.
ABT_INLINE std::uint64_t encode_group(
    const float* values, const std::uint16_t* places, int first, int sent, float cut,
    const float (&levels)[2], float* u) {
  std::uint64_t group = 0;
  for (int j = 0; j < kGroupNumbers; ++j) {
    if (first + j < sent) {
      const float x = values[first + j];
      const std::uint16_t place = places[first + j];
      const bool upper = ::fabsf(x) > cut;
      const std::uint32_t code = signed_code(x, upper);
      group |= group_bits(place, code, j);
      u[place] = with_one_nan(x - with_sign(level_at(levels, upper), code));
    }
  }
  return group;
}

// The reverse of encode_group(): decodes a group into the chunk `out`.
ABT_INLINE void decode_group(
    std::uint64_t group, int first, const SparseChunk& chunk, const float (&levels)[2],
    const DecodeWire& job, float* out) {
  for (int j = 0; j < kGroupNumbers; ++j) {
    const auto index = static_cast<int>(index_in(group, j));
    // A damaged record must not cause a write outside the chunk.
    if (first + j < chunk.sent && index < chunk.count) {
      const std::uint32_t code = code_in(group, j);
      const float value = with_sign(level_at(levels, (code & 1u) != 0), code);
      out[index] = decoded(job.add ? out[index] : 0.0f, job.factor, value, job.add);
    }
  }
}

ABT_LAUNCHER int encode_sparse(const EncodeWire& job, void* stream);
ABT_LAUNCHER int decode_sparse(const DecodeWire& job, void* stream);
void encode_sparse_on_host(const EncodeWire& job);
void decode_sparse_on_host(const DecodeWire& job);

}  // namespace abtrain::kernels
