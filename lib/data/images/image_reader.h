// One thread's tools for turning an image file into network input, as torchvision's transforms do
// with a Pillow image.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/images/image_decoder.h"
#include "data/images/random_box.h"
#include "data/images/resample.h"

namespace abtrain::data {

// The form of the output: `side` x `side` pixels with values byte * scale + shift, one scale and
// one shift per channel.
struct ImageForm {
  std::int64_t side = 0;
  std::int64_t resize = 0;  // shorter side of the resized image, at least `side`
  std::vector<float> scale, shift;
};

class ImageReader {
 public:
  explicit ImageReader(ImageForm form) : form_(std::move(form)) {}

  // Put the file's bytes here; then open() reads the header. open() and the functions below throw
  // Error(DamagedData) with only the reason.
  std::vector<std::uint8_t>& bytes() {
    return bytes_;
  }
  ImageSize open() {
    return decoder_.open(bytes_);
  }

  // Does torchvision's Resize and CenterCrop. Decodes at full size, so that the numbers match
  // torchvision's.
  void write_center(bool mirrored, float* out);
  // Resizes the box to `side` x `side`. Decodes a JPEG at reduced size as long as no side of the
  // box falls below `side` pixels.
  void write_box(const Box& box, bool mirrored, float* out);

 private:
  ImageForm form_;
  std::vector<std::uint8_t> bytes_;
  ImageDecoder decoder_;
  Resampler resampler_;
};

}  // namespace abtrain::data
