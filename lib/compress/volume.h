// The volume that a reducer sends, computed from the sizes of its collectives alone.
#pragma once

#include <cstdint>

#include "comm/traffic.h"

namespace abtrain::compress {

struct Volume {
  std::int64_t bytes = 0;  // sent by one member
  // The payload P of the collectives, in bits: the data that one member contributes, however many
  // bytes the collective then sends.
  std::int64_t payload_bits = 0;

  friend Volume operator+(const Volume& a, const Volume& b) {
    return {a.bytes + b.bytes, a.payload_bits + b.payload_bits};
  }
};

// A member of a group. Its functions return the volume that it sends in a collective of elements of
// `size` bytes.
struct Member {
  int members = 1;
  int rank = 0;

  Volume all_reduce(std::int64_t numel, std::int64_t size) const {
    return {comm::all_reduce_bytes(numel, size, members, rank), 8 * numel * size};
  }
  Volume all_gather(std::int64_t own, std::int64_t size) const {
    return {comm::all_gather_bytes(own, size, members), 8 * own * size};
  }
  // An all-to-all that sends each of `numel` elements to the member that serves it, then an
  // all-gather of the `numel` results. This member serves `own` elements. As in an all-reduce, the
  // payload counts once.
  Volume serve(std::int64_t numel, std::int64_t own, std::int64_t size) const {
    return {
        comm::all_to_all_bytes(numel, own, size) + comm::all_gather_bytes(own, size, members),
        8 * numel * size};
  }
};

}  // namespace abtrain::compress
