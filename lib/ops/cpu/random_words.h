// Generates many counter-based random words (kernels/random.h) at once.
#pragma once

#include <cstdint>

#include "kernels/random.h"

namespace abtrain::ops {

using kernels::RandomStream;

// Writes words 4 * first .. 4 * (first + blocks) - 1 of the stream.
void random_words(
    const RandomStream& stream, std::int64_t first, std::int64_t blocks, std::uint32_t* out);

}  // namespace abtrain::ops
