// Encodes a flat fp32 array u as a record of few bits per element, which is sent, and decodes the
// record (see ops/wire_codes.h). Launchers take device pointers and a cudaStream_t, and return a
// cudaError_t.
//
// A record holds scales (bf16), then codes, all little-endian. Zeros fill each of the two parts up
// to a multiple of 4 bytes. A record must begin at a multiple of 4 bytes, as consecutive records in
// a buffer do.
//
// Int8, Int4, Int2, with b bits per code: one scale per chunk of kWireChunk elements, and 16 b
// bytes of codes. Byte i holds the codes of elements i, i + 16 b, i + 32 b, ... of the chunk, with
// the code of element i in the low bits. A last chunk of n < 16 b elements has only n bytes. An
// element decodes to a multiple of the scale. In Int8 and Int4, the code is this multiple, in two's
// complement. In Int2, the multiple is 3 if bit 0 is set, else 1, and negative if bit 1 is set.
//
// Sparse: two scales per chunk of kSparseChunk elements, the lower level and the upper one, and 7
// bytes of codes for each group of four elements that are sent. A group is an integer of 56 bits.
// Bits 12 j .. 12 j + 11 are the index in the chunk of the group's element j (indices ascend); bit
// 48 + 2 j is set if the element has the upper level, and bit 49 + 2 j if it is negative. If a
// chunk's last group has fewer than four elements, the bits of the missing elements are 0.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

enum class WireCode { Int8, Int4, Int2, Sparse };

constexpr std::int64_t kWireChunk = 128;
constexpr std::int64_t kSparseChunk = 4096;
constexpr int kGroupNumbers = 4;
constexpr int kGroupBytes = 7;

struct WireLayout {
  WireCode code;
  std::int64_t numel;  // element count of u, at least 1
  // Sparse: how many elements of each chunk are sent (a multiple of kGroupNumbers), and how many of
  // the last chunk.
  int sent;
  int sent_of_last;
};

ABT_HOST_DEVICE constexpr std::int64_t fill_words(std::int64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

ABT_HOST_DEVICE constexpr std::int64_t wire_chunks(const WireLayout& layout) {
  // Constant divisors, so that the compiler turns the divisions into shifts.
  return layout.code == WireCode::Sparse ? (layout.numel + kSparseChunk - 1) / kSparseChunk
                                         : (layout.numel + kWireChunk - 1) / kWireChunk;
}

// Offset in bytes of a record's codes.
ABT_HOST_DEVICE constexpr std::int64_t codes_begin(const WireLayout& layout) {
  const int scales = layout.code == WireCode::Sparse ? 2 : 1;
  return fill_words(2 * scales * wire_chunks(layout));
}

// Bytes of the codes of kWireChunk elements with this many bits each.
ABT_HOST_DEVICE constexpr std::int64_t chunk_bytes(int bits) {
  return kWireChunk / 8 * bits;
}
// Bytes of the codes of `sent` elements in Sparse.
ABT_HOST_DEVICE constexpr std::int64_t sparse_bytes(int sent) {
  return (sent + kGroupNumbers - 1) / kGroupNumbers * kGroupBytes;
}

constexpr std::int64_t wire_bytes(const WireLayout& layout) {
  const std::int64_t before = wire_chunks(layout) - 1;  // chunks before the last
  if (layout.code == WireCode::Sparse) {
    return codes_begin(layout) +
           fill_words(before * sparse_bytes(layout.sent) + sparse_bytes(layout.sent_of_last));
  }
  const std::int64_t width = chunk_bytes(
      layout.code == WireCode::Int8   ? 8
      : layout.code == WireCode::Int4 ? 4
                                      : 2);
  const std::int64_t last = layout.numel - before * kWireChunk;
  return codes_begin(layout) + before * width + fill_words(last < width ? last : width);
}

// u becomes u minus the decoded record.
struct EncodeWire {
  WireLayout layout;
  float* u;
  std::uint8_t* record;
};
ABT_LAUNCHER int encode_wire(const EncodeWire& job, void* stream);
void work_on_host(const EncodeWire& job);

// out = (add ? out : 0) + factor * the decoded record.
struct DecodeWire {
  WireLayout layout;
  const std::uint8_t* record;
  float factor;
  bool add;
  float* out;
};
ABT_LAUNCHER int decode_wire(const DecodeWire& job, void* stream);
void work_on_host(const DecodeWire& job);

}  // namespace abtrain::kernels
