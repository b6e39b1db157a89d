// What a tape sees of a pass.
#include "nn/tape.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>

#include "examples.h"
#include "nn/linear.h"

namespace abtrain::nn {
namespace {

using testing::family;
using testing::Layers;
using testing::of_layers;
using testing::prepare;
using testing::Trained;

// A hook on an output must see the gradient before what is done to it in place.
TEST(Tapes, SeeGradientsBeforeAReluInPlace) {
  const auto check_layer = [](Layer& layer, const at::Tensor& x) {
    Tape tape;
    at::Tensor y = layer.forward(x, {true, {}, &tape});
    const at::Tensor before = y.detach().clone();
    const at::Tensor factors = at::randn(y.sizes());
    (at::relu_(y) * factors).sum().backward();
    const at::Tensor want = factors * before.gt(0);
    const at::Tensor got = *tape.maps.back().gradient;
    if (before.dim() == 4 && got.dim() == 2) {
      EXPECT_TRUE(at::equal(got, want.permute({0, 2, 3, 1}).reshape(got.sizes())));
    } else {
      EXPECT_TRUE(at::equal(got, want.reshape(got.sizes())));
    }
  };
  const auto train = [](Layer& layer, std::int64_t rank) {
    NamedTensors tensors;
    layer.list("", tensors);
    for (const NamedWeight& named : tensors.weights) {
      Weight& w = *named.weight;
      if (rank > 0) {
        w.set_factors({at::randn({w.m(), rank}), at::randn({rank, w.n()})});
        w.inner.requires_grad_();
        w.outer.requires_grad_();
      } else {
        w.set_dense(at::randn(w.sizes()).requires_grad_());
      }
    }
    for (const NamedParameter& p : tensors.parameters) {
      p.tensor->requires_grad_();
    }
  };
  for (const std::int64_t rank : {0, 2}) {
    for (const bool bias : {false, true}) {
      const auto rows = linear(6, 4, bias);
      train(*rows, rank);
      check_layer(*rows, at::randn({3, 6}));
      check_layer(*rows, at::randn({3, 5, 6}));
      const auto conv = conv2d(2, 4, {.bias = bias});
      train(*conv, rank);
      check_layer(*conv, at::randn({3, 2, 5, 5}));
      const auto head =
          conv2d(2, 4, {.kernel = 3, .padding = 0, .bias = bias, .grows_input = true});
      train(*head, rank);
      check_layer(*head, at::randn({3, 2, 1, 1}));
      check_layer(*head, at::randn({3, 2, 2, 2}));
    }
  }
}

// With a tape a dense model does what it does without; and a pass in which
// nothing is trained leaves nothing behind.
TEST(Tapes, ChangeNothing) {
  for (const char* name : {"mlp", "lenet5", "vgg11"}) {
    const auto model = family(name, {3, 32, 32, 3}, 0.05);
    prepare(*model, at::kFloat, Trained::Inner);
    const at::Tensor images = at::randn({4, 3, 32, 32});
    Tape tape;
    const at::Tensor taped = model->forward(images, true, &tape);
    EXPECT_FALSE(tape.maps.empty());
    EXPECT_TRUE(at::equal(taped, model->forward(images, true)));
    tape.maps.clear();
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(at::equal(taped, model->forward(images, true, &tape)));
    EXPECT_TRUE(tape.maps.empty());
  }
}

TEST(Models, HaveExampleGradientsOrMixExamples) {
  for (const std::string& name : model_names()) {
    if (name.starts_with("gpt") || name == "exported") {
      continue;
    }
    const auto model = family(name, {3, 32, 32, 3}, 0.05);
    const at::Tensor images = at::randn({3, 3, 32, 32});
    const at::Tensor of_two = model->forward(images.narrow(0, 0, 2), true)[0];
    const bool mixes = !model->forward(images, true)[0].allclose(of_two, 1e-3, 1e-4);
    EXPECT_EQ(mixes_examples(*model), mixes) << name;
    EXPECT_EQ(has_example_gradients(*model), !mixes && !name.starts_with("vit")) << name;
  }
  ModelOptions gpt;
  gpt.name = "gpt-nano";
  const auto text = make_model(gpt, {0, 0, 0, 8, 4});
  EXPECT_FALSE(has_example_gradients(*text));
  EXPECT_FALSE(mixes_examples(*text));
  Layers grouped;
  grouped.emplace_back("conv", conv2d(4, 4, ConvOptions{.groups = 2}));
  EXPECT_FALSE(has_example_gradients(*of_layers(std::move(grouped))));
}

}  // namespace
}  // namespace abtrain::nn
