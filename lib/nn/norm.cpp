#include "nn/norm.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "base/error.h"

namespace abtrain::nn {

namespace {

class BatchNorm2d : public Layer {
 public:
  explicit BatchNorm2d(std::int64_t channels)
      : weight_(at::ones({channels})),
        bias_(at::zeros({channels})),
        mean_(at::zeros({channels})),
        variance_(at::ones({channels})) {}

  at::Tensor forward(const at::Tensor& input, const Pass& pass) override {
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

  void list(const std::string& prefix, NamedTensors& tensors) override {
    tensors.parameter(prefix + "weight", weight_, false, {});
    tensors.parameter(prefix + "bias", bias_, false, {});
    tensors.buffer(prefix + "running_mean", mean_);
    tensors.buffer(prefix + "running_var", variance_);
  }

 private:
  at::Tensor weight_, bias_, mean_, variance_;
};

class LayerNorm : public Layer {
 public:
  LayerNorm(std::int64_t features, double eps)
      : weight_(at::ones({features})), bias_(at::zeros({features})), eps_(eps) {}

  at::Tensor forward(const at::Tensor& input, const Pass&) override {
    return at::layer_norm(input.to(weight_.scalar_type()), weight_.sizes(), weight_, bias_, eps_);
  }

  void list(const std::string& prefix, NamedTensors& tensors) override {
    tensors.parameter(prefix + "weight", weight_, false, {});
    tensors.parameter(prefix + "bias", bias_, false, {});
  }

 private:
  at::Tensor weight_, bias_;
  double eps_;
};

}  // namespace

std::unique_ptr<Layer> batch_norm(std::int64_t channels) {
  return std::make_unique<BatchNorm2d>(channels);
}

std::unique_ptr<Layer> layer_norm(std::int64_t features, double eps) {
  return std::make_unique<LayerNorm>(features, eps);
}

}  // namespace abtrain::nn
