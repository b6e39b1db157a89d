// What both THC schemes share (Li et al., "THC: accelerating distributed deep
// learning using tensor homomorphic compression", NSDI 2024).
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>

#include "base/error.h"
#include "comm/communicator.h"
#include "compress/reducer_options.h"

namespace abtrain::compress {

// The range of a rotated block with norm M and L elements is T M / sqrt(L). One
// standard normal number in 1,024 lies beyond T.
constexpr float kThcRange = 3.2971933456919635F;

// Throws Error(Config) if `block` is not a power of two.
inline void check_block(const ReducerOptions& options) {
  ABT_CHECK(
      std::has_single_bit(static_cast<std::uint64_t>(options.block)),
      Config,
      "reducer.block: expected a power of two, got ",
      options.block);
}

}  // namespace abtrain::compress
