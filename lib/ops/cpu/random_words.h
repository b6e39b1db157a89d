// Generates runs of counter-based random words (base/random.h) in bulk.
#pragma once

#include <array>
#include <cstdint>

#include "ops/cpu/simd.h"

namespace abtrain::ops {

// A stream of random_key(seed, purpose) with two numbers of its own.
struct WordStream {
  std::array<std::uint32_t, 2> key;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

// Writes words 4 * first .. 4 * (first + blocks) - 1 of the stream.
void random_words(
    const WordStream& stream, std::int64_t first, std::int64_t blocks, std::uint32_t* out,
    Simd simd);

}  // namespace abtrain::ops
