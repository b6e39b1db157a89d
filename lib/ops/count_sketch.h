// Count sketches (Charikar, Chen and Farach-Colton 2002) of differences of
// gradients. Each element goes, with a random sign, into a random one of a few
// buckets; the expected inner product of two sketches is that of the vectors.
//
// To fix the order of summation, and so the bits on CPU and GPU, neighboring
// elements share their randomness: the vector is cut into runs of as many
// elements as there are buckets, and each run is rotated by a random offset.
// Every bucket gets one element of each run.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

// Writes the sketch of first - second, flat fp32 tensors; if `second` is
// undefined, of `first`. sketch: fp32, its element count is the number of
// buckets. On CUDA the kernel is queued on this thread's current stream.
void count_sketch(
    const at::Tensor& first, const at::Tensor& second, std::uint32_t seed,
    const at::Tensor& sketch);

}  // namespace abtrain::ops
