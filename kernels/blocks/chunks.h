// Chunks of a flat fp32 array u: squared norms, gather to fp16, scatter back. See ops/chunks.h for
// what the operations compute; GPU results are bit-identical to the CPU's. Pointers are device
// pointers; launches are asynchronous on `stream` (a cudaStream_t) and return a cudaError_t as an
// int. The host has its own implementation (ops/cpu/chunks.cpp): it copies chunks to tiles, because
// the processor's instruction for fp16 converts several adjacent elements at once.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// u[i] = (add ? u[i] : 0) + g[i]; norms[c] = the sum of squares of chunk c of
// the new u. There are ceil(numel / chunk) chunks.
struct AddWithNorms {
  float* u;
  const float* g;
  bool add;
  std::int64_t numel;
  std::int64_t chunk;
  float* norms;
};
ABT_LAUNCHER int add_with_norms(const AddWithNorms& job, void* stream);
void work_on_host(const AddWithNorms& job);

// The chunks of u that are sent, in their order on the wire.
struct Chunks {
  const std::int32_t* indices;  // ascending, without duplicates
  std::int64_t count;
  std::int64_t chunk;  // elements per chunk; count * chunk is below 2^31
  std::int64_t numel;  // element count of u
};

// wire (fp16) = u / members; u -= members * wire.
struct TakeChunks {
  Chunks chunks;
  float* u;
  int members;
  void* wire;
};
ABT_LAUNCHER int take_chunks(const TakeChunks& job, void* stream);
void work_on_host(const TakeChunks& job);

// out += wire if `add`, else out = wire, at the chunks' places.
struct PutChunks {
  Chunks chunks;
  const void* wire;
  float* out;
  bool add;
};
ABT_LAUNCHER int put_chunks(const PutChunks& job, void* stream);
void work_on_host(const PutChunks& job);

}  // namespace abtrain::kernels
