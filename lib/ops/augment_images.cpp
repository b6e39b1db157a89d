#include "ops/augment_images.h"

#include <limits>

#include "base/error.h"
#include "device/tensor_text.h"
#include "ops/augment_job.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

bool is_dense(const at::Tensor& t, at::ScalarType type, const at::Tensor& like) {
  return t.defined() && t.scalar_type() == type && t.is_contiguous() && t.device() == like.device();
}

bool is_batch(const at::Tensor& t, const at::Tensor& pixels) {
  const auto layout =
      pixels.size(1) > 1 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const auto type = t.scalar_type();
  return t.dim() == 4 && t.sizes().slice(1) == pixels.sizes().slice(1) &&
         (type == at::kFloat || type == at::kBFloat16) && t.device() == pixels.device() &&
         t.is_contiguous(layout);
}

}  // namespace

void augment_images(const AugmentBatch& batch, const Augmentation& how) {
  const auto& [pixels, labels, indices, table, images, image_labels] = batch;
  ABT_ASSERT(
      pixels.dim() == 4 && is_dense(pixels, at::kByte, pixels) &&
          is_dense(labels, at::kLong, pixels) && labels.dim() == 1 &&
          labels.size(0) == pixels.size(0),
      "augment_images: expected N x C x H x W bytes and N labels, got {} {} "
      "and {}",
      pixels.scalar_type(), pixels.sizes(), labels.sizes());
  ABT_ASSERT(
      is_dense(table, at::kFloat, pixels) && table.dim() == 2 && table.size(0) == pixels.size(1) &&
          table.size(1) == 256,
      "augment_images: expected a table of {} x 256, got {}", pixels.size(1), table.sizes());
  ABT_ASSERT(
      is_dense(indices, at::kLong, pixels) && indices.dim() == 1 && is_batch(images, pixels) &&
          is_dense(image_labels, at::kLong, pixels) && image_labels.dim() == 1 &&
          images.size(0) == indices.size(0) && image_labels.size(0) == indices.size(0),
      "augment_images: expected B images and labels for B indices, got {} "
      "indices, pixels {} on {}, images {} {} on {} and {} labels",
      indices.sizes(), pixels.sizes(), pixels.device(), images.scalar_type(), images.sizes(),
      images.device(), image_labels.sizes());
  ABT_ASSERT(
      how.pad >= 0 && how.pad < (1 << 20) &&
          pixels.size(1) * pixels.size(2) * pixels.size(3) <= std::numeric_limits<int>::max() / 2,
      "augment_images: a pad of {} or images of {} is too large", how.pad, pixels.sizes());
  dispatch("augment_images", augment_job(batch, how), pixels.device(), kernels::augment_images);
}

}  // namespace abtrain::ops
