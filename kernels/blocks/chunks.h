// Operations on chunks (adjacent elements) of a flat fp32 array u: squared norms, gathering chunks
// into the fp16 buffer that is sent (`wire`), and scattering it back. See ops/chunks.h; GPU results
// are bit-identical to the CPU's. Launchers take device pointers and a cudaStream_t, and return a
// cudaError_t. The host has its own implementation (ops/cpu/chunks.cpp): it copies chunks to tiles,
// because the CPU's conversions from and to fp16 take several adjacent elements at once.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// u[i] = (add ? u[i] : 0) + g[i]; norms[c] = the sum of squares of chunk c of the new u. There are
// ceil(numel / chunk) chunks.
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

// For the elements of the chunks: wire (fp16) = u / members, then u -= members * wire. `members` is
// the number of workers in the mean.
struct TakeChunks {
  Chunks chunks;
  float* u;
  int members;
  void* wire;
};
ABT_LAUNCHER int take_chunks(const TakeChunks& job, void* stream);
void work_on_host(const TakeChunks& job);

// For the elements of the chunks: out += wire if `add`, else out = wire.
struct PutChunks {
  Chunks chunks;
  const void* wire;
  float* out;
  bool add;
};
ABT_LAUNCHER int put_chunks(const PutChunks& job, void* stream);
void work_on_host(const PutChunks& job);

}  // namespace abtrain::kernels
