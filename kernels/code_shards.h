// Saturating sums of 4-bit codes: who has which shard of them, and how their
// range follows the share that was clamped. Shared by host and device.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// Which of `shards` runs of whole units holds this unit; run i begins at unit
// floor(units * i / shards).
ABT_HOST_DEVICE inline std::int64_t
shard_of(std::int64_t unit, std::int64_t units, std::int64_t shards) {
  const std::uint64_t top = static_cast<std::uint64_t>((unit + 1) * shards - 1);
  // A division of 32 bits is much the shorter one on a GPU.
  return static_cast<std::int64_t>(
      top >> 32 == 0 && units >> 32 == 0
          ? static_cast<std::uint32_t>(top) / static_cast<std::uint32_t>(units)
          : top / static_cast<std::uint64_t>(units));
}

// Bytes behind each shard of clamped sums: the number of sums that were clamped
// (uint32), then zeros.
constexpr std::int64_t kTailBytes = 16;

// Sums of 4-bit codes are taken in 16 bits.
constexpr int kMostMembers = 4096;

// The controller of a saturating sum's range, of the share that was clamped;
// within 0.25 and `members`, which is enough where all have the same numbers.
ABT_HOST_DEVICE inline float
next_scale(float scale, std::uint64_t clamped, std::uint64_t all, int members) {
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
