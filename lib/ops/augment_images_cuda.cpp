#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "base/random.h"
#include "device/cuda_check.h"
#include "kernels/augment_images.h"
#include "ops/augment_images_backends.h"

namespace abtrain::ops {

void augment_images_cuda(const AugmentBatch& batch, const Augmentation& how) {
  const auto& [pixels, labels, indices, table, images, image_labels] = batch;
  const c10::cuda::CUDAGuard guard(pixels.device());
  kernels::AugmentImages job{};
  job.pixels = pixels.const_data_ptr<std::uint8_t>();
  job.labels = labels.const_data_ptr<std::int64_t>();
  job.indices = indices.const_data_ptr<std::int64_t>();
  job.table = table.const_data_ptr<float>();
  job.images = images.mutable_data_ptr();
  job.image_labels = image_labels.mutable_data_ptr<std::int64_t>();
  job.count = indices.size(0);
  job.channels = static_cast<int>(pixels.size(1));
  job.height = static_cast<int>(pixels.size(2));
  job.width = static_cast<int>(pixels.size(3));
  job.crop = how.crop;
  job.pad = static_cast<int>(how.pad);
  job.flip = how.flip;
  job.erase = how.erase;
  job.seed = how.seed;
  job.purpose = static_cast<std::uint32_t>(RandomPurpose::Augment);
  job.epoch = static_cast<std::uint32_t>(how.epoch);
  ABT_CUDA_CHECK(kernels::augment_images(
      job,
      images.scalar_type() == at::kFloat ? kernels::Element::F32
                                         : kernels::Element::BF16,
      c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
