#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/augment_images_backends.h"
#include "ops/augment_job.h"

namespace abtrain::ops {

void augment_images_cuda(const AugmentBatch& batch, const Augmentation& how) {
  const c10::cuda::CUDAGuard guard(batch.pixels.device());
  ABT_CUDA_CHECK(kernels::augment_images(
      augment_job(batch, how),
      batch.images.scalar_type() == at::kFloat ? kernels::Element::F32
                                               : kernels::Element::BF16,
      c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
