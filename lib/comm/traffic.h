// Bytes that one member SENDS in a collective, to the byte: what the meter
// counts and `plan` predicts. A payload is cut in n chunks; chunk i begins at
// element numel * i / n, so chunks differ by at most one element.
#pragma once

#include <cstdint>

namespace abtrain::comm {

constexpr std::int64_t chunk_begin(std::int64_t numel, int n, int i) {
  // 128 bits: numel * i may pass 2^63 only in theory, but costs nothing here.
  return static_cast<std::int64_t>(static_cast<__int128>(numel) * i / n);
}

constexpr std::int64_t chunk_size(std::int64_t numel, int n, int i) {
  return chunk_begin(numel, n, i + 1) - chunk_begin(numel, n, i);
}

// Every chunk but its own goes to the chunk's owner.
constexpr std::int64_t reduce_scatter_bytes(
    std::int64_t numel,
    std::int64_t element_size,
    int n,
    int rank) {
  return (numel - chunk_size(numel, n, rank)) * element_size;
}

// Its own `numel` elements go to each other member.
constexpr std::int64_t
all_gather_bytes(std::int64_t numel, std::int64_t element_size, int n) {
  return numel * element_size * (n - 1);
}

// Reduce-scatter, then all-gather of its own chunk.
constexpr std::int64_t all_reduce_bytes(
    std::int64_t numel,
    std::int64_t element_size,
    int n,
    int rank) {
  return reduce_scatter_bytes(numel, element_size, n, rank) +
         all_gather_bytes(chunk_size(numel, n, rank), element_size, n);
}

// Of `numel` elements all but the `own` that it keeps.
constexpr std::int64_t all_to_all_bytes(
    std::int64_t numel,
    std::int64_t own,
    std::int64_t element_size) {
  return (numel - own) * element_size;
}

constexpr std::int64_t broadcast_bytes(
    std::int64_t numel,
    std::int64_t element_size,
    int n,
    int rank,
    int root) {
  return rank == root ? numel * element_size * (n - 1) : 0;
}

}  // namespace abtrain::comm
