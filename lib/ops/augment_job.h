// Builds the arguments of the augment_images kernel from checked arguments. It
// has its own header so that tests/kernels fills them exactly as the GPU form
// does.
#pragma once

#include "base/random.h"
#include "kernels/images/augment_images.h"
#include "ops/augment_images.h"

namespace abtrain::ops {

inline kernels::AugmentImages augment_job(const AugmentBatch& batch, const Augmentation& how) {
  kernels::AugmentImages job{};
  job.pixels = batch.pixels.const_data_ptr<std::uint8_t>();
  job.labels = batch.labels.const_data_ptr<std::int64_t>();
  job.indices = batch.indices.const_data_ptr<std::int64_t>();
  job.table = batch.table.const_data_ptr<float>();
  job.images = batch.images.mutable_data_ptr();
  job.image_labels = batch.image_labels.mutable_data_ptr<std::int64_t>();
  job.count = batch.indices.size(0);
  job.channels = static_cast<int>(batch.pixels.size(1));
  job.height = static_cast<int>(batch.pixels.size(2));
  job.width = static_cast<int>(batch.pixels.size(3));
  job.crop = how.crop;
  job.pad = static_cast<int>(how.pad);
  job.flip = how.flip;
  job.erase = how.erase;
  job.seed = how.seed;
  job.purpose = static_cast<std::uint32_t>(RandomPurpose::Augment);
  job.epoch = static_cast<std::uint32_t>(how.epoch);
  return job;
}

}  // namespace abtrain::ops
