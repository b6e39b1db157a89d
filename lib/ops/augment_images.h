// Builds a batch from images stored as bytes: random crop, flip and erasing,
// normalization, layout and cast in one pass over memory.
//
// Random numbers are counter-based. Each image has a random stream with the key (seed, Augment,
// epoch, index), and draws from it in this order: rows down and columns right (crop), a coin
// (flip), a uniform number and a box (erasing). A step that is off draws nothing. Hence the result
// for an image is bit-identical in every batch and on every device. On CUDA the kernel is queued on
// this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/images/augment_images.h"

namespace abtrain::ops {

using kernels::Augmentation;
using kernels::draw_treatment;
using kernels::Placement;

// All tensors are on one device.
struct AugmentBatch {
  at::Tensor pixels;        // N x C x H x W, uint8, contiguous
  at::Tensor labels;        // N, int64
  at::Tensor indices;       // B, int64, each 0 .. N-1 (checked on the CPU only)
  at::Tensor table;         // C x 256, float32: value of each byte per channel
  at::Tensor images;        // output: B x C x H x W, float32 or bfloat16,
                            // channels-last if C > 1
  at::Tensor image_labels;  // output: B, int64
};

void augment_images(const AugmentBatch& batch, const Augmentation& how);

}  // namespace abtrain::ops
