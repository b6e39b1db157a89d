#include "data/images/float_images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <limits>
#include <vector>

#include "base/error.h"
#include "device/tensor_text.h"
#include "ops/erased_box.h"

namespace abtrain::data {
namespace {

constexpr double kAddedToDeviation = 1e-3;

struct Size {
  std::int64_t channels, height, width;
  std::int64_t area() const {
    return height * width;
  }
};

// Writes a C x H x W image, placed and normalized, as H x W x C.
void write_image(
    const float* from, const float* mean, const float* std, const Size& size,
    const ops::Placement& place, float* to) {
  for (std::int64_t y = 0; y < size.height; ++y) {
    const std::int64_t source_y = y + place.down;
    const bool has_row = source_y >= 0 && source_y < size.height;
    for (std::int64_t x = 0; x < size.width; ++x) {
      const std::int64_t source_x = (place.mirrored ? size.width - 1 - x : x) + place.right;
      const bool has_pixel = has_row && source_x >= 0 && source_x < size.width;
      const std::int64_t source = source_y * size.width + source_x;
      const std::int64_t out = y * size.width + x;
      for (std::int64_t c = 0; c < size.channels; ++c) {
        const std::int64_t channel = c * size.area();
        const float value = has_pixel ? from[channel + source] : 0.0f;
        *to++ = (value - mean[channel + out]) / std[channel + out];
      }
    }
  }
}

// Calls `body` with one piece of the images after another, converted to `type`; all images,
// converted at once, might not fit into memory.
void each_piece(
    const FloatImages& images, at::ScalarType type,
    const std::function<void(const at::Tensor& piece)>& body) {
  constexpr std::int64_t kImages = 1024;
  for (const at::Tensor& piece : images.places.split(kImages)) {
    body(at::index_select(images.values, 0, piece).to(type));
  }
}

// Reshapes N x C x H x W images to N x C x side x H / side x side x W / side.
at::Tensor blocks_of(const at::Tensor& images, std::int64_t side) {
  return images.reshape(
      {images.size(0), images.size(1), side, images.size(2) / side, side, images.size(3) / side});
}

}  // namespace

at::Tensor pooled(const at::Tensor& pixels, std::int64_t side) {
  if (side == 0) {
    return pixels.to(at::kFloat).div_(255);
  }
  constexpr std::int64_t kImages = 64;  // so few that their integer sums fit into the cache
  const auto whole = static_cast<double>(255 * pixels.size(2) * pixels.size(3) / (side * side));
  std::vector<at::Tensor> parts;
  for (const at::Tensor& piece : pixels.split(kImages)) {
    // The quotient of two integers is rounded only once.
    parts.push_back(blocks_of(piece, side).sum({3, 5}).to(at::kFloat).div_(whole));
  }
  return at::cat(parts);
}

FloatImages pooled(const FloatImages& images, std::int64_t side) {
  std::vector<at::Tensor> parts;
  each_piece(images, at::kFloat, [&](const at::Tensor& x) {
    parts.push_back(blocks_of(x, side).mean({3, 5}));
  });
  return {
      at::cat(parts), images.labels, images.targets, at::arange(images.places.size(0), at::kLong)};
}

Norm standard_norm(const FloatImages& images) {
  const auto count = static_cast<double>(images.labels.size(0));
  const auto mean_of = [&](const auto& term) {
    at::Tensor sum = at::zeros(images.values.sizes().slice(1), at::kDouble);
    each_piece(images, at::kDouble, [&](const at::Tensor& x) { sum += term(x).sum(0); });
    return sum / count;
  };
  const at::Tensor mean = mean_of([](const at::Tensor& x) { return x; });
  const at::Tensor variance = mean_of([&](const at::Tensor& x) { return (x - mean).square(); });
  at::Tensor low, high;
  each_piece(images, at::kDouble, [&](const at::Tensor& x) {
    low = low.defined() ? at::minimum(low, at::amin(x, 0)) : at::amin(x, 0);
    high = high.defined() ? at::maximum(high, at::amax(x, 0)) : at::amax(x, 0);
  });
  at::Tensor std = variance.sqrt() + kAddedToDeviation;
  std.masked_fill_(low == high, std::numeric_limits<double>::infinity());
  return {mean.to(at::kFloat), std.to(at::kFloat)};
}

Norm channel_norm(const Dataset& dataset) {
  const auto of = [&](const std::vector<float>& values) {
    return at::tensor(values)
        .view({-1, 1, 1})
        .expand({-1, dataset.height, dataset.width})
        .contiguous();
  };
  return {of(dataset.mean), of(dataset.std)};
}

Batch augment_values(
    const FloatImages& images, const Norm& norm, std::span<const std::int64_t> indices,
    const ops::Augmentation& how) {
  const at::Tensor& values = images.values;
  const Size size{values.size(1), values.size(2), values.size(3)};
  const std::int64_t numel = size.channels * size.area();
  ABT_ASSERT(
      norm.mean.defined() && norm.mean.sizes() == values.sizes().slice(1) &&
          norm.std.sizes() == norm.mean.sizes(),
      "images of {} have no mean and deviation for each pixel", values.sizes());
  Batch batch = empty_batch(
      static_cast<std::int64_t>(indices.size()), size.channels, size.height, size.width);
  const auto* places = images.places.const_data_ptr<std::int64_t>();
  const auto* from_labels = images.labels.const_data_ptr<std::int64_t>();
  const auto* mean = norm.mean.const_data_ptr<float>();
  const auto* std = norm.std.const_data_ptr<float>();
  auto* image = batch.inputs.mutable_data_ptr<float>();
  auto* label = batch.labels.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t index : indices) {
    // Not a copy if the values are fp32 already.
    const at::Tensor from = values[places[index]].to(at::kFloat);
    const auto [place, erased] = ops::draw_treatment(how, index, size.height, size.width);
    write_image(from.const_data_ptr<float>(), mean, std, size, place, image);
    ops::erase_box(image, size.width, size.channels, erased);
    *label++ = from_labels[index];
    image += numel;
  }
  return batch;
}

}  // namespace abtrain::data
