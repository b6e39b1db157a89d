// Layers against their formulas.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include "device/generator.h"
#include "distance.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/model.h"
#include "nn/norm.h"

namespace abtrain::nn {
namespace {

Pass training(std::uint64_t seed) {
  Pass pass{true, device::make_generator(at::kCPU)};
  pass.random.set_current_seed(seed);
  return pass;
}

// In a grid of blocks, whatever the size of the images and the precision.
TEST(GrownInput, OfAGrid) {
  const auto layer = conv2d(4, 6, {.kernel = 7, .padding = 0, .grows_input = true});
  NamedTensors tensors;
  layer->list("", tensors);
  Weight& w = *tensors.weights[0].weight;
  w.set_factors({at::randn({2, 2, 98, 2}), at::randn({2, 2, 2, 3})});
  *tensors.parameters[0].tensor = at::randn({6});
  for (const std::int64_t side : {1, 2, 9}) {
    const at::Tensor x = at::randn({2, 4, side, side}).contiguous(at::MemoryFormat::ChannelsLast);
    const std::int64_t grown = std::max<std::int64_t>(7, side);
    const at::Tensor want = at::conv2d(
        at::adaptive_avg_pool2d(x, {grown, grown}), w.merged(), *tensors.parameters[0].tensor);
    const double scale = want.abs().max().item<double>();
    EXPECT_LT(distance(layer->forward(x, {}), want) / scale, 1e-5) << side;
    Pass pass;
    pass.precision = {at::kBFloat16, 0};
    EXPECT_LT(distance(layer->forward(x, pass).to(at::kFloat), want) / scale, 0.03) << side;
  }
}

// timm's ConvMlp: small inputs are grown to the kernel.
TEST(GrownInput, IsAdaptiveAveragePoolingAndAConvolution) {
  for (const bool factored : {false, true}) {
    const auto layer = conv2d(3, 5, {.kernel = 7, .padding = 0, .grows_input = true});
    NamedTensors tensors;
    layer->list("", tensors);
    Weight& w = *tensors.weights[0].weight;
    *tensors.parameters[0].tensor = at::randn({5});
    if (factored) {
      w.set_factors({at::randn({147, 2}), at::randn({2, 5})});
      w.inner.requires_grad_();
    } else {
      w.set_dense(
          at::randn({5, 3, 7, 7}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_());
    }
    at::Tensor& trained = factored ? w.inner : w.dense;
    const auto gradient_of = [&](const at::Tensor& y) {
      trained.mutable_grad().reset();
      (y * y).sum().backward();
      return trained.grad().clone();
    };
    for (const std::int64_t side : {1, 2, 7, 9}) {
      const at::Tensor x = at::randn({2, 3, side, side}).contiguous(at::MemoryFormat::ChannelsLast);
      const std::int64_t grown = std::max<std::int64_t>(7, side);
      const at::Tensor got = layer->forward(x, {});
      const at::Tensor want = at::conv2d(
          at::adaptive_avg_pool2d(x, {grown, grown}), w.merged(), *tensors.parameters[0].tensor);
      EXPECT_LT(distance(got, want) / want.abs().max().item<double>(), 1e-5) << side;
      const at::Tensor gradient = gradient_of(want);
      EXPECT_LT(distance(gradient_of(got), gradient) / gradient.abs().max().item<double>(), 1e-5)
          << side;
    }
  }
}

// The shortcut of a ResNet's stage.
TEST(StridedPointwiseConvolution, HasTheGradientsOfFloat64) {
  const auto layer = conv2d(4, 8, {.kernel = 1, .stride = 2, .padding = 0, .bias = false});
  NamedTensors tensors;
  layer->list("", tensors);
  const at::Tensor weight = at::randn({8, 4, 1, 1});
  const at::Tensor images = at::randn({4, 4, 14, 14});
  const auto gradients_in = [&](at::ScalarType dtype) {
    const at::Tensor x =
        images.to(dtype).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
    tensors.weights[0].weight->set_dense(
        weight.to(dtype).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_());
    const at::Tensor y = layer->forward(x, {});
    EXPECT_EQ(y.sizes(), at::IntArrayRef({4, 8, 7, 7}));
    (y * y).sum().backward();
    return std::pair(
        tensors.weights[0].weight->dense.grad().to(at::kDouble), x.grad().to(at::kDouble));
  };
  const auto [weight64, input64] = gradients_in(at::kDouble);
  const auto [weight32, input32] = gradients_in(at::kFloat);
  EXPECT_LT(distance(weight32, weight64), 1e-5 * weight64.norm().item<double>());
  EXPECT_LT(distance(input32, input64), 1e-5 * input64.norm().item<double>());
}

TEST(GroupedConvolution, StaysDense) {
  const auto layer = conv2d(6, 9, {.groups = 3});
  NamedTensors tensors;
  layer->list("", tensors);
  Weight& w = *tensors.weights[0].weight;
  EXPECT_TRUE(w.is_fixed());
  EXPECT_EQ(w.sizes(), (std::vector<std::int64_t>{9, 2, 3, 3}));
  w.set_dense(at::randn({9, 2, 3, 3}));
  const at::Tensor x = at::randn({2, 6, 5, 5});
  EXPECT_LT(
      distance(
          layer->forward(x, {}),
          at::conv2d(
              x, w.dense, *tensors.parameters[0].tensor, at::IntArrayRef({1, 1}),
              at::IntArrayRef({1, 1}), at::IntArrayRef({1, 1}), 3)),
      1e-5);
}

TEST(Dropout, KeepsTheMeanAndDropsItsShare) {
  const auto layer = dropout(0.25);
  const at::Tensor x = at::ones({1000, 100});
  const at::Tensor y = layer->forward(x, training(7));
  const double dropped = y.eq(0).sum().item<double>() / 1e5;
  EXPECT_NEAR(dropped, 0.25, 4 * std::sqrt(0.25 * 0.75 / 1e5));
  EXPECT_EQ(y.max().item<float>(), 1 / 0.75F);
  EXPECT_TRUE(at::equal(layer->forward(x, {}), x));
}

TEST(Dropout, WithoutAGeneratorIsAFault) {
  EXPECT_ANY_THROW(dropout(0.5)->forward(at::ones({2}), {true, {}}));
}

TEST(Dropout, DropsWholeExamples) {
  const auto layer = dropout(0.2, /*whole_examples=*/true);
  const at::Tensor y = layer->forward(at::ones({5000, 3, 2}), training(3)).flatten(1);
  const at::Tensor low = y.amin(1);
  EXPECT_TRUE(at::equal(low, y.amax(1)));
  EXPECT_NEAR(low.eq(0).sum().item<double>() / 5000, 0.2, 4 * std::sqrt(0.2 * 0.8 / 5000));
  EXPECT_EQ(low.max().item<float>(), 1 / 0.8F);
}

// Two workers, or two steps, drop other numbers; the same seed the same ones.
TEST(Models, DropoutFollowsTheSeedOfTheModel) {
  const at::NoGradGuard no_grad;
  for (const char* name : {"vgg11", "vgg11-small", "resnet18", "vit-tiny"}) {
    ModelOptions options;
    options.name = name;
    options.width = 0.125;
    options.drop_rate = 0.5;
    const auto model = make_model(options, {3, 32, 32, 10});
    model->initialize(InitName::Kaiming, 1);
    const at::Tensor x = at::rand({4, 3, 32, 32});
    EXPECT_TRUE(at::equal(model->forward(x, false), model->forward(x, false)));
    const auto draw = [&](std::uint64_t seed) {
      model->seed_dropout(seed);
      return model->forward(x, true);
    };
    EXPECT_TRUE(at::equal(draw(1), draw(1))) << name;
    EXPECT_FALSE(at::equal(draw(1), draw(2))) << name;
  }
}

TEST(Models, DropPathDropsInTrainingOnly) {
  const at::NoGradGuard no_grad;
  ModelOptions options;
  options.name = "vit-tiny";
  options.drop_path = 0.9;
  const auto model = make_model(options, {3, 32, 32, 10});
  model->initialize(InitName::Kaiming, 1);
  const at::Tensor x = at::rand({8, 3, 32, 32});
  model->seed_dropout(1);
  const at::Tensor dropped = model->forward(x, true);
  const at::Tensor whole = model->forward(x, false);
  EXPECT_FALSE(at::equal(dropped, whole));
  EXPECT_TRUE(at::equal(whole, model->forward(x, false)));
}

TEST(LayerNorm, IsTheFormula) {
  const auto layer = layer_norm(6, 1e-6);
  const at::Tensor x = at::randn({2, 3, 6});
  const at::Tensor centered = x - x.mean(-1, true);
  const at::Tensor want = centered / (centered.pow(2).mean(-1, true) + 1e-6).sqrt();
  EXPECT_LT(distance(layer->forward(x, {}), want), 1e-5);
}

}  // namespace
}  // namespace abtrain::nn
