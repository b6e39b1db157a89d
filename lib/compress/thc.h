// Shared by both THC schemes (Li et al., "THC: accelerating distributed deep learning using tensor
// homomorphic compression", NSDI 2024).
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>
#include <string>

#include "base/conflict.h"
#include "compress/reducer_options.h"

namespace abtrain::compress {

// T: the codes of a rotated block of L elements with norm M cover magnitudes up to T M / sqrt(L).
// Of standard normal numbers, one in 1,024 is larger than T in magnitude.
constexpr float kThcRange = 3.2971933456919635F;

// The Scheme::check of both schemes.
inline void check_block(
    const ReducerOptions& options, const std::string& section, std::int64_t /*members*/,
    Conflicts& out) {
  conflict_if(
      !std::has_single_bit(static_cast<std::uint64_t>(options.block)), out,
      {section + ".block", section + ".name"}, "expected a power of two, got {}", options.block);
}

}  // namespace abtrain::compress
