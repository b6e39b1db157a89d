// Chunks of a flat fp32 array u on the device: squared norms, gather to fp16,
// scatter back; what ops/chunks.h says, with the same bits. Pointers are device
// pointers; launches are asynchronous on `stream` (a cudaStream_t). Return a
// cudaError_t as int.
#pragma once

#include <cstdint>

namespace abtrain::kernels {

// u[i] = (add ? u[i] : 0) + g[i]; norms[c] of the numel / chunk chunks, rounded
// up.
int add_with_norms(
    float* u,
    const float* g,
    bool add,
    std::int64_t numel,
    std::int64_t chunk,
    float* norms,
    void* stream);

// Chunks of u and their place on the wire.
struct Chunks {
  const std::int32_t* indices;  // each once
  std::int64_t count;
  std::int64_t chunk;  // count * chunk below 2^31
  std::int64_t numel;  // of u
};

// wire (fp16) = u / members; u -= members * wire.
int take_chunks(
    const Chunks& chunks,
    float* u,
    int members,
    void* wire,
    void* stream);

// out += wire, or out = wire.
int put_chunks(
    const Chunks& chunks,
    const void* wire,
    float* out,
    bool add,
    void* stream);

}  // namespace abtrain::kernels
