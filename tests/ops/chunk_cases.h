// Sizes and chosen chunks, for the tests of operations on chunks.
#pragma once

#include <ATen/ops/tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace abtrain::ops {

// Numbers and numbers of a chunk: full packets and not, full thread blocks and not.
inline const std::vector<std::pair<std::int64_t, std::int64_t>> kChunkSizes = {
    {1, 1},       {1, 64},       {7, 2},   {64, 64},   {65, 64},   {1001, 7}, {5000, 1}, {9999, 33},
    {20001, 128}, {12289, 4096}, {50, 64}, {2240, 64}, {300, 128}, {100, 7},  {30, 1}};

// About half of the chunks, the first and the last among them.
inline at::Tensor some_chunks(std::int64_t count) {
  std::vector<int> taken;
  for (std::int64_t c = 0; c < count; ++c) {
    if (c == 0 || c == count - 1 || c % 5 < 2) {
      taken.push_back(static_cast<int>(c));
    }
  }
  return at::tensor(taken, at::kInt);
}

}  // namespace abtrain::ops
