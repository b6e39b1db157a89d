// Builds the arguments of the augment_images kernel from checked arguments. This is a header of its
// own so that tests/kernels fills the arguments exactly as the op does.
#pragma once

#include "kernels/images/augment_images.h"
#include "ops/augment_images.h"

namespace abtrain::ops {

inline kernels::AugmentImages augment_job(const AugmentBatch& batch, const Augmentation& how) {
  return {
      .pixels = batch.pixels.const_data_ptr<std::uint8_t>(),
      .labels = batch.labels.const_data_ptr<std::int64_t>(),
      .indices = batch.indices.const_data_ptr<std::int64_t>(),
      .table = batch.table.const_data_ptr<float>(),
      .images = batch.images.mutable_data_ptr(),
      .element =
          batch.images.scalar_type() == at::kFloat ? kernels::Element::F32 : kernels::Element::BF16,
      .image_labels = batch.image_labels.mutable_data_ptr<std::int64_t>(),
      .count = batch.indices.size(0),
      .stored = batch.labels.size(0),
      .channels = static_cast<int>(batch.pixels.size(1)),
      .height = static_cast<int>(batch.pixels.size(2)),
      .width = static_cast<int>(batch.pixels.size(3)),
      .how = how,
  };
}

}  // namespace abtrain::ops
