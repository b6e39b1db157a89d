// Generates runs of counter-based random words (base/random.h) in bulk.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "kernels/random.h"
#include "ops/cpu/simd.h"

namespace abtrain::ops {

using kernels::RandomStream;

// The stream of random_key(seed, purpose) with these two numbers of its own.
inline RandomStream random_stream(
    std::uint64_t seed, RandomPurpose purpose, std::uint32_t a, std::uint32_t b) {
  const auto key = random_key(seed, purpose);
  return {{key[0], key[1]}, a, b};
}

// Writes words 4 * first .. 4 * (first + blocks) - 1 of the stream.
void random_words(
    const RandomStream& stream, std::int64_t first, std::int64_t blocks, std::uint32_t* out,
    Simd simd);

}  // namespace abtrain::ops
