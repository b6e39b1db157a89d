// Makes batches from images that are stored on the device as bytes. One pass does random crop, flip
// and erasing, normalization by a table, layout and cast. Each image draws random numbers from the
// stream (seed, Augment, epoch, index) in the order that ops/augment_images.h gives. The launcher
// takes device pointers and a cudaStream_t, and returns a cudaError_t. The host has its own
// implementation: it converts images row by row, whereas a thread block stages whole images in
// shared memory if they fit.
#pragma once

#include <cstdint>

#include "kernels/element.h"
#include "kernels/images/erased_box.h"
#include "kernels/random.h"

namespace abtrain::kernels {

struct Augmentation {
  bool crop = false;     // shift the image at random; pixels from outside are black
  std::int64_t pad = 0;  // largest shift in each direction, in pixels
  bool flip = false;     // mirror left and right with probability 1/2
  double erase = 0;      // probability of erasing a box; its elements become 0
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

struct AugmentImages {
  const std::uint8_t* pixels;   // N x C x H x W
  const std::int64_t* labels;   // N
  const std::int64_t* indices;  // B, each in 0 .. N-1 (not checked on a GPU)
  const float* table;           // C x 256: normalized value of each byte
  void* images;                 // B x H x W x C
  Element element;              // of the images: F32 or BF16
  std::int64_t* image_labels;   // B
  std::int64_t count;           // B
  std::int64_t stored;          // N
  int channels, height, width;  // their product is below 2^31
  Augmentation how;
};

// Crop and flip of one image: output pixel (y, x), or (y, width-1-x) if mirrored, is input pixel
// (y + down, x + right), or black (byte 0) if that is outside.
struct Placement {
  int down = 0, right = 0, mirrored = 0;
};

// The random choices for one image; elements in the box become 0.
struct Treatment {
  Placement place;
  Box erased;
};
ABT_HOST_DEVICE inline Treatment draw_treatment(
    const Augmentation& how, std::int64_t index, std::int64_t height, std::int64_t width) {
  Random random(
      how.seed, RandomPurpose::Augment, static_cast<std::uint32_t>(how.epoch),
      static_cast<std::uint32_t>(index));
  Placement place;
  if (how.crop) {
    const int pad = static_cast<int>(how.pad);
    const auto choices = static_cast<std::uint32_t>(2 * pad + 1);
    place.down = static_cast<int>(random.below(choices)) - pad;
    place.right = static_cast<int>(random.below(choices)) - pad;
  }
  place.mirrored = how.flip && random.coin();
  return {place, draw_erased(random, how.erase, height, width)};
}

ABT_LAUNCHER int augment_images(const AugmentImages& job, void* stream);
void work_on_host(const AugmentImages& job);

}  // namespace abtrain::kernels
