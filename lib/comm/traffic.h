// The bytes that one member SENDS in a collective, exact to the byte: the meter counts them and
// `abtrain plan` predicts them. A payload is cut into n chunks of nearly equal length; chunk i
// begins at element numel * i / n.
#pragma once

#include <cstdint>

namespace abtrain::comm {

constexpr std::int64_t chunk_begin(std::int64_t numel, int n, int i) {
  // Uses 128 bits: numel * i exceeds 2^63 only in theory, but the width costs nothing here.
  return static_cast<std::int64_t>(static_cast<__int128>(numel) * i / n);
}

constexpr std::int64_t chunk_size(std::int64_t numel, int n, int i) {
  return chunk_begin(numel, n, i + 1) - chunk_begin(numel, n, i);
}

// A member sends every chunk but its own to that chunk's owner.
constexpr std::int64_t reduce_scatter_bytes(
    std::int64_t numel, std::int64_t element_size, int n, int rank) {
  return (numel - chunk_size(numel, n, rank)) * element_size;
}

// A member sends its own `numel` elements to each other member.
constexpr std::int64_t all_gather_bytes(std::int64_t numel, std::int64_t element_size, int n) {
  return numel * element_size * (n - 1);
}

// A reduce-scatter, then an all-gather of the member's own chunk.
constexpr std::int64_t all_reduce_bytes(
    std::int64_t numel, std::int64_t element_size, int n, int rank) {
  return reduce_scatter_bytes(numel, element_size, n, rank) +
         all_gather_bytes(chunk_size(numel, n, rank), element_size, n);
}

// A member sends all of its `numel` elements except the `own` that it keeps.
constexpr std::int64_t all_to_all_bytes(
    std::int64_t numel, std::int64_t own, std::int64_t element_size) {
  return (numel - own) * element_size;
}

constexpr std::int64_t broadcast_bytes(
    std::int64_t numel, std::int64_t element_size, int n, int rank, int root) {
  return rank == root ? numel * element_size * (n - 1) : 0;
}

}  // namespace abtrain::comm
