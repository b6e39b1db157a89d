#include "data/augment.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "data/file_batches.h"
#include "data/random_box.h"

namespace abtrain::data {
namespace {

constexpr std::int64_t levels = 256;
constexpr std::int64_t largest_pad = 1024;

// Sizes of one image, in pixels.
struct Size {
  std::int64_t channels, height, width;
  std::int64_t area() const {
    return height * width;
  }
};

// Out pixel (y, x) is source pixel (y + down, x + right), black outside;
// mirrored afterwards.
struct Placement {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool mirrored = false;
};

// Bytes C x H x W to floats H x W x C. A fixed number of channels lets the
// compiler unroll over them; 0 takes the number in `size`.
template <int fixed_channels>
void write_image(
    const std::uint8_t* from,
    float* to,
    const float* table,
    const Size& size,
    const Placement& place) {
  const std::int64_t channels = fixed_channels ? fixed_channels : size.channels;
  const std::int64_t low =
      std::clamp<std::int64_t>(-place.right, 0, size.width);
  const std::int64_t high =
      std::clamp<std::int64_t>(size.width - place.right, low, size.width);
  const std::int64_t step = place.mirrored ? -channels : channels;
  const auto black = [&](float* out, std::int64_t count) {
    for (; count > 0; --count, out += step) {
      for (std::int64_t c = 0; c < channels; ++c) {
        out[c] = table[c * levels];
      }
    }
  };
  for (std::int64_t y = 0; y < size.height; ++y) {
    float* row = to + y * size.width * channels +
                 (place.mirrored ? (size.width - 1) * channels : 0);
    const std::int64_t source_y = y + place.down;
    if (source_y < 0 || source_y >= size.height) {
      black(row, size.width);
      continue;
    }
    black(row, low);
    const std::uint8_t* source = from + source_y * size.width + place.right;
    float* out = row + low * step;
    for (std::int64_t x = low; x < high; ++x, out += step) {
      for (std::int64_t c = 0; c < channels; ++c) {
        out[c] = table[c * levels + source[c * size.area() + x]];
      }
    }
    black(out, size.width - high);
  }
}

void erase_box(float* image, const Size& size, const Box& box) {
  for (std::int64_t y = box.top; y < box.top + box.height; ++y) {
    std::fill_n(
        image + (y * size.width + box.left) * size.channels,
        box.width * size.channels,
        0.0f);
  }
}

// Writes images one after another into a batch that it allocates.
class Writer {
 public:
  Writer(
      const Images& images,
      std::int64_t count,
      const std::vector<float>& table)
      : pixels_(images.pixels.const_data_ptr<std::uint8_t>()),
        labels_(images.labels.const_data_ptr<std::int64_t>()),
        size_{
            images.pixels.size(1),
            images.pixels.size(2),
            images.pixels.size(3)},
        table_(table.data()),
        batch_(empty_batch(count, size_.channels, size_.height, size_.width)),
        image_(batch_.images.data_ptr<float>()),
        label_(batch_.labels.data_ptr<std::int64_t>()) {}

  void add(std::int64_t index, const Placement& place, const Box& box) {
    const std::int64_t numel = size_.channels * size_.area();
    const auto write = size_.channels == 1   ? write_image<1>
                       : size_.channels == 3 ? write_image<3>
                                             : write_image<0>;
    write(pixels_ + index * numel, image_, table_, size_, place);
    erase_box(image_, size_, box);
    image_ += numel;
    *label_++ = labels_[index];
  }
  const Size& size() const {
    return size_;
  }
  Batch take() {
    return std::move(batch_);
  }

 private:
  const std::uint8_t* pixels_;
  const std::int64_t* labels_;
  Size size_;
  const float* table_;
  Batch batch_;
  float* image_;
  std::int64_t* label_;
};

void check_images(const Images& images, std::int64_t channels) {
  if (images.files) {
    ABT_ASSERT(
        images.places.defined() && images.places.numel() == images.size() &&
            images.places.is_contiguous() && images.labels.is_contiguous(),
        "image files lack places or labels");
    return;
  }
  const at::Tensor& pixels = images.pixels;
  ABT_ASSERT(
      pixels.defined() && images.labels.defined() && pixels.dim() == 4 &&
          pixels.size(0) == images.size() && pixels.size(1) == channels &&
          pixels.is_contiguous() && images.labels.is_contiguous(),
      "images are not N x ",
      channels,
      " x H x W with N labels");
}

}  // namespace

Augment::Augment(
    const DataOptions& options,
    const Dataset& dataset,
    std::uint64_t seed)
    : options_(options),
      seed_(seed),
      crop_(options.augment == "crop" || options.augment == "crop-flip"),
      flip_(options.augment == "flip" || options.augment == "crop-flip"),
      channels_(static_cast<std::int64_t>(dataset.mean.size())) {
  ABT_CHECK(
      crop_ || flip_ || options.augment == "none",
      Config,
      "data.augment: expected none, flip, crop or crop-flip; got '",
      options.augment,
      "'");
  ABT_CHECK(
      !flip_ || dataset.flips,
      Config,
      "data.augment: '",
      options.augment,
      "' flips images, which changes labels of ",
      dataset.name,
      "; expected none or crop");
  ABT_CHECK(
      options.pad >= 0 && options.pad <= largest_pad,
      Config,
      "data.pad: expected 0 .. ",
      largest_pad,
      ", got ",
      options.pad);
  ABT_CHECK(
      options.erase >= 0 && options.erase <= 1,
      Config,
      "data.erase: expected a probability, 0 .. 1, got ",
      options.erase);
  ABT_ASSERT(
      channels_ > 0 && dataset.std.size() == dataset.mean.size(),
      dataset.name,
      " has no mean and std for each channel");
  if (dataset.train.files || dataset.test.files) {
    files_ = std::make_shared<FileBatches>(options, dataset);
  }
  table_.reserve(static_cast<std::size_t>(channels_ * levels));
  for (std::size_t c = 0; c < dataset.mean.size(); ++c) {
    for (std::int64_t level = 0; level < levels; ++level) {
      table_.push_back(
          (static_cast<float>(level) / 255.0f - dataset.mean[c]) /
          dataset.std[c]);
    }
  }
}

Random Augment::random(std::int64_t epoch, std::int64_t index) const {
  return Random(
      seed_,
      RandomPurpose::Augment,
      static_cast<std::uint32_t>(epoch),
      static_cast<std::uint32_t>(index));
}

Box Augment::draw_erased_or_none(
    Random& random,
    std::int64_t height,
    std::int64_t width) const {
  return options_.erase > 0 && random.uniform() < options_.erase
             ? draw_erased(random, height, width)
             : Box{};
}

Batch Augment::training_of_files(
    const Images& images,
    std::span<const std::int64_t> indices,
    std::int64_t epoch) const {
  return files_->training(
      images,
      indices,
      [&](ImageReader& reader,
          JpegDecoder::Size size,
          std::int64_t index,
          float* out) {
        const std::int64_t side = options_.image_size;
        Random random = this->random(epoch, index);
        if (crop_) {
          const Box box = draw_crop(
              random,
              size.height,
              size.width,
              options_.crop_scale.front(),
              options_.crop_scale.back());
          reader.write_box(box, flip_ && random.coin(), out);
        } else {
          reader.write_centre(flip_ && random.coin(), out);
        }
        erase_box(
            out, {3, side, side}, draw_erased_or_none(random, side, side));
      });
}

Batch Augment::training(
    const Images& images,
    std::span<const std::int64_t> indices,
    std::int64_t epoch) const {
  check_images(images, channels_);
  for (const std::int64_t index : indices) {
    ABT_ASSERT(
        index >= 0 && index < images.size(),
        "example ",
        index,
        " of ",
        images.size());
  }
  if (images.files) {
    return training_of_files(images, indices, epoch);
  }
  Writer writer(images, static_cast<std::int64_t>(indices.size()), table_);
  for (const std::int64_t index : indices) {
    Random random = this->random(epoch, index);
    Placement place;
    if (crop_) {
      const auto shift = [&] {
        return std::int64_t{random.below(
                   static_cast<std::uint32_t>(2 * options_.pad + 1))} -
               options_.pad;
      };
      place.down = shift();
      place.right = shift();
    }
    place.mirrored = flip_ && random.coin();
    writer.add(
        index,
        place,
        draw_erased_or_none(random, writer.size().height, writer.size().width));
  }
  return writer.take();
}

Batch Augment::evaluation(
    const Images& images,
    std::int64_t begin,
    std::int64_t end) const {
  check_images(images, channels_);
  ABT_ASSERT(
      0 <= begin && begin <= end && end <= images.size(),
      "examples ",
      begin,
      " .. ",
      end,
      " of ",
      images.size());
  if (images.files) {
    return files_->evaluation(images, begin, end);
  }
  Writer writer(images, end - begin, table_);
  for (std::int64_t index = begin; index < end; ++index) {
    writer.add(index, {}, {});
  }
  return writer.take();
}

}  // namespace abtrain::data
