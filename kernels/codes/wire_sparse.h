// The part of wire_codes.h for WireCode::Sparse. The host has a form of its
// own: it finds the cut by bisection over 16-bit keys in vectors, a thread
// block by counting digits.
#pragma once

#include "kernels/codes/wire_codes.h"

namespace abtrain::kernels {

// Where a chunk and its part of the record are.
struct SparseChunk {
  std::int64_t begin;  // index in u of its first element
  int count;
  int sent;
  std::int64_t scales;  // where they are in the record
  std::int64_t codes;
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

ABT_LAUNCHER int encode_sparse(const EncodeWire& job, void* stream);
ABT_LAUNCHER int decode_sparse(const DecodeWire& job, void* stream);
void encode_sparse_on_host(const EncodeWire& job);
void decode_sparse_on_host(const DecodeWire& job);

}  // namespace abtrain::kernels
