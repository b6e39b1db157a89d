// A count sketch of a difference of gradients (ops/count_sketch.h has the
// meaning). Pointers are device pointers; launches are asynchronous on `stream`
// (a cudaStream_t) and return a cudaError_t as an int. The host has a form of
// its own: it adds runs of elements to buckets, where a thread gathers the
// elements of its bucket.
#pragma once

#include <cstdint>

#include "kernels/bits.h"

namespace abtrain::kernels {

// A chunk is `buckets` adjacent elements, one for each bucket. kSketchChunks
// chunks form a part; a part's chunks are added in order, then the parts are
// added in order.
constexpr std::int64_t kSketchChunks = 64;

struct CountSketch {
  const float* first;
  const float* second;  // null: 0
  std::int64_t numel;
  std::int64_t buckets;
  std::uint32_t seed;
  float* parts;  // scratch: sketch_parts() x buckets
  float* out;    // buckets
};
ABT_LAUNCHER int count_sketch(const CountSketch& job, void* stream);
void work_on_host(const CountSketch& job);

inline std::int64_t sketch_parts(const CountSketch& job) {
  const std::int64_t numbers = kSketchChunks * job.buckets;
  return (job.numel + numbers - 1) / numbers;
}

// A 32-bit hash (the finalizer of MurmurHash3, Appleby, public domain).
ABT_HOST_DEVICE inline std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  return x ^ (x >> 16);
}
// The number of places by which the elements of a chunk are rotated.
ABT_HOST_DEVICE inline std::int64_t turn_of(
    std::int64_t chunk, std::int64_t buckets, std::uint32_t seed) {
  const std::uint32_t hash = mixed(static_cast<std::uint32_t>(chunk) ^ seed);
  return static_cast<std::int64_t>(
      (std::uint64_t{hash} * static_cast<std::uint64_t>(buckets)) >> 32);
}
// The random sign of an element: 0 or the sign bit of a float.
ABT_HOST_DEVICE inline std::uint32_t sign_of(std::int64_t index, std::uint32_t seed) {
  return mixed(static_cast<std::uint32_t>(index) + ~seed) & 0x80000000u;
}

}  // namespace abtrain::kernels
