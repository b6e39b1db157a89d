// Sums of 4-bit codes that are clamped to 4 bits: which shard (the part that one worker adds up)
// holds a unit, and how the codes' range adapts to the share of clamped sums. Shared by host and
// device.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// Returns the shard that holds this unit. A shard consists of adjacent whole units; shard i begins
// at unit floor(units * i / shards).
ABT_HOST_DEVICE inline std::int64_t shard_of(
    std::int64_t unit, std::int64_t units, std::int64_t shards) {
  const std::uint64_t top = static_cast<std::uint64_t>((unit + 1) * shards - 1);
  // A 32-bit division is much faster on a GPU.
  return static_cast<std::int64_t>(
      top >> 32 == 0 && units >> 32 == 0
          ? static_cast<std::uint32_t>(top) / static_cast<std::uint32_t>(units)
          : top / static_cast<std::uint64_t>(units));
}

// Bytes of the tail that follows each shard of sums: the number of sums that were clamped (uint32),
// then zeros.
constexpr std::int64_t kTailBytes = 16;

// The largest number of workers (members): sums of their 4-bit codes are accumulated in 16 bits.
constexpr int kMaxMembers = 4096;

// Returns the next `scale`, a factor of the codes' range: larger if more than 4 % of the `all` sums
// were clamped, smaller if fewer than 1 % were. The result is between 0.25 and `members`, which
// suffices even if all members have the same values.
ABT_HOST_DEVICE inline float next_scale(
    float scale, std::uint64_t clamped, std::uint64_t all, int members) {
  if (25 * clamped > all) {
    const float next = scale * 1.1f;
    const float most = static_cast<float>(members);
    return next < most ? next : most;
  }
  if (100 * clamped < all) {
    const float next = scale / 1.05f;
    return next > 0.25f ? next : 0.25f;
  }
  return scale;
}

}  // namespace abtrain::kernels
