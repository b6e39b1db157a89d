#include "nn/norm.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "base/error.h"

namespace abtrain::nn {

BatchNorm2d::BatchNorm2d(std::int64_t channels)
    : weight_(at::ones({channels})),
      bias_(at::zeros({channels})),
      mean_(at::zeros({channels})),
      variance_(at::ones({channels})) {}

at::Tensor BatchNorm2d::forward(const at::Tensor& input, const Pass& pass) {
  const bool collects = pass.statistics_share > 0;
  const bool by_batch = pass.training || collects;
  ABT_CHECK(
      !by_batch || input.numel() > input.size(1), Config,
      "data.batch_size: a batch norm gets a single value per channel ({} image "
      "of 1x1); it needs more images per batch, or larger ones",
      input.size(0));
  return at::batch_norm(
      input, weight_, bias_, mean_, variance_, by_batch, collects ? pass.statistics_share : 0.1,
      1e-5, true);
}

void BatchNorm2d::list(const std::string& prefix, NamedTensors& tensors) {
  tensors.parameter(prefix + "weight", weight_, false, {});
  tensors.parameter(prefix + "bias", bias_, false, {});
  tensors.buffer(prefix + "running_mean", mean_);
  tensors.buffer(prefix + "running_var", variance_);
}

LayerNorm::LayerNorm(std::int64_t features, double eps)
    : weight_(at::ones({features})), bias_(at::zeros({features})), eps_(eps) {}

at::Tensor LayerNorm::forward(const at::Tensor& input, const Pass&) {
  return at::layer_norm(input.to(weight_.scalar_type()), weight_.sizes(), weight_, bias_, eps_);
}

void LayerNorm::list(const std::string& prefix, NamedTensors& tensors) {
  tensors.parameter(prefix + "weight", weight_, false, {});
  tensors.parameter(prefix + "bias", bias_, false, {});
}

}  // namespace abtrain::nn
