#include "ops/cross_entropy.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ne.h>

#include "base/error.h"
#include "device/tensor_text.h"
#include "kernels/blocks/cross_entropy.h"
#include "ops/team_host.h"

namespace abtrain::ops {

LossAndGradient cross_entropy(
    const at::Tensor& logits, const at::Tensor& labels, const EntropyOptions& options) {
  const at::ScalarType type = logits.scalar_type();
  ABT_ASSERT(
      logits.dim() == 2 && logits.is_contiguous() && logits.size(1) > 0 &&
          (type == at::kFloat || type == at::kBFloat16),
      "cross_entropy: expected contiguous rows of fp32 or bf16, got {}{}", type, logits.sizes());
  ABT_ASSERT(
      labels.dim() == 1 && labels.is_contiguous() && labels.scalar_type() == at::kLong &&
          labels.size(0) == logits.size(0) && labels.device() == logits.device(),
      "cross_entropy: expected {} int64 labels on {}, got {}{} on {}", logits.size(0),
      logits.device(), labels.scalar_type(), labels.sizes(), labels.device());
  const at::Tensor count = options.ignored ? at::ne(labels, *options.ignored).sum() : at::Tensor();
  // The kernel needs 16-byte alignment, but a view may begin anywhere.
  const bool aligned = reinterpret_cast<std::uintptr_t>(logits.const_data_ptr()) % 16 == 0;
  const at::Tensor x = aligned ? logits : logits.clone();
  const at::Tensor losses = at::empty({logits.size(0)}, logits.options().dtype(at::kFloat));
  const at::Tensor gradient = at::empty_like(x);
  const kernels::CrossEntropy job{
      type == at::kFloat ? kernels::Element::F32 : kernels::Element::BF16,
      logits.size(0),
      logits.size(1),
      x.const_data_ptr(),
      labels.const_data_ptr<std::int64_t>(),
      count.defined() ? count.const_data_ptr<std::int64_t>() : nullptr,
      options.ignored.value_or(-1),
      static_cast<float>(options.smoothing),
      static_cast<float>(options.weight),
      losses.mutable_data_ptr<float>(),
      gradient.mutable_data_ptr()};
  dispatch("cross_entropy", job, logits.device(), kernels::cross_entropy);
  return {losses.sum(), gradient};
}

}  // namespace abtrain::ops
