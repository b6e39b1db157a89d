// Count sketches (Charikar, Chen and Farach-Colton 2002) of differences of
// gradients: each number goes, with a random sign, into a random one of few
// buckets; scalar products of sketches are those of the vectors in the mean.
//
// So that sums have one order, and the same bits on CPU and GPU, neighbours
// share their randomness: of each run of as many numbers as there are buckets,
// every bucket gets one, the run turned by a random number of places.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

// sketch (fp32, its numel is the number of buckets) of first - second, flat
// fp32; second undefined: of first. On CUDA queued on this thread's current
// stream.
void count_sketch(
    const at::Tensor& first,
    const at::Tensor& second,
    std::uint32_t seed,
    const at::Tensor& sketch);

}  // namespace abtrain::ops
