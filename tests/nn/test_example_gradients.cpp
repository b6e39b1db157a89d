// The gradients of a batch's examples against backward passes of each alone.
#include "nn/example_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "examples.h"
#include "factored_model.h"
#include "linalg/rank_rule.h"
#include "nn/linear.h"

namespace abtrain::nn {
namespace {

using testing::family;
using testing::Layers;
using testing::loss_of;
using testing::numel;
using testing::of_layers;
using testing::placed;
using testing::prepare;
using testing::reference;
using testing::Trained;

double error(const at::Tensor& got, const at::Tensor& want) {
  EXPECT_EQ(got.sizes(), want.sizes());
  EXPECT_EQ(got.scalar_type(), want.scalar_type());
  return (got - want).abs().max().item<double>() / want.abs().max().item<double>();
}

void expect_gradients(
    const UnitGradients& got, const std::vector<Placed>& trained, const at::Tensor& want,
    double tolerance) {
  const std::int64_t batch = want.size(0);
  ASSERT_EQ(got.size(), batch);
  EXPECT_LT(error(got.products(), at::mm(want, want.t())), tolerance);
  const at::Tensor vector = at::randn({want.size(1)}, want.options());
  // A product may be near 0: rounding is judged by the lengths of its factors.
  const at::Tensor lengths = want.norm(2, {1}) * vector.norm();
  const at::Tensor apart = got.products(vector) - at::mv(want, vector);
  EXPECT_LT((apart / lengths).abs().max().item<double>(), tolerance);
  const at::Tensor coefficients = at::randn({batch}, want.options());
  const at::Tensor zero = at::zeros({want.size(1)}, want.options());
  got.add(zero, coefficients);
  EXPECT_LT(error(zero, at::mv(want.t(), coefficients)), tolerance);
  const at::Tensor sum = vector.clone();
  got.add(sum, coefficients);
  EXPECT_LT(error(sum, vector + zero), 1e-5);
  if (batch % 2 == 0) {
    const at::Tensor pairs = want.view({batch / 2, 2, -1});
    const at::Tensor rows = at::zeros({batch / 2, want.size(1)}, want.options());
    for (const Placed& p : trained) {
      rows.narrow(1, p.offset, p.tensor.numel()).fill_(3);
    }
    got.differences(rows);
    EXPECT_LT(error(rows, pairs.select(1, 0) - pairs.select(1, 1)), tolerance);
  } else {
    EXPECT_ANY_THROW(got.differences(at::zeros({batch / 2, want.size(1)})));
  }
}

// All ways, of batches of several sizes, with ample scratch and with little.
void check(
    Model& model, const std::vector<std::int64_t>& image, at::ScalarType type = at::kDouble,
    double tolerance = 1e-10) {
  ASSERT_TRUE(has_example_gradients(model));
  ASSERT_FALSE(mixes_examples(model));
  const std::vector<Placed> trained = placed(model);
  for (const std::int64_t batch : {1, 2, 7, 8}) {
    std::vector<std::int64_t> sizes = image;
    sizes.insert(sizes.begin(), batch);
    at::Tensor images = at::randn(sizes).to(type);
    if (images.dim() == 4) {
      images = images.contiguous(at::MemoryFormat::ChannelsLast);
    }
    const at::Tensor labels = at::randint(3, {batch}, at::kLong);
    const at::Tensor want = reference(model, trained, images, labels);
    Tape tape;
    loss_of(model, images, labels, &tape).backward();
    for (const std::int64_t scratch : {kExampleScratch, std::int64_t{20'000}, std::int64_t{1}}) {
      SCOPED_TRACE(formatted("batch {}, scratch {}", batch, scratch));
      expect_gradients(*example_gradients(tape, trained, scratch), trained, want, tolerance);
    }
  }
}

void factor(Model& model, std::int64_t rank) {
  for (const NamedWeight& w : factorable_weights(model, {"default"})) {
    testing::factor_weight(w, std::min(rank, w.weight->n()));
  }
}

// Linear layers with in-place ReLUs on B x T x 6, then the mean of the tokens.
std::unique_ptr<Model> token_model() {
  Layers layers;
  layers.emplace_back("fc1", linear(6, 8));
  layers.emplace_back("relu1", relu());
  layers.emplace_back("fc2", linear(8, 5, false));
  layers.emplace_back("relu2", relu());
  layers.emplace_back("mean", std::make_unique<Function>([](const at::Tensor& x, const Pass&) {
                        return x.mean(1);
                      }));
  layers.emplace_back("fc3", linear(5, 3));
  return of_layers(std::move(layers));
}

// One convolution with a ReLU on its output.
std::unique_ptr<Model> conv_model(std::int64_t in, const ConvOptions& options) {
  Layers layers;
  layers.emplace_back("conv", conv2d(in, 5, options));
  layers.emplace_back("relu", relu());
  layers.emplace_back("pool", average_pool());
  layers.emplace_back("fc", linear(5, 3));
  return of_layers(std::move(layers));
}

struct Case {
  std::string name;
  data::ExampleShape shape;
  double width = 1;
};

class Families : public ::testing::TestWithParam<Case> {
 protected:
  void check_family(std::int64_t rank, Trained trained) const {
    const Case& c = GetParam();
    const auto model = family(c.name, c.shape, c.width);
    if (rank > 0) {
      factor(*model, rank);
    }
    prepare(*model, at::kDouble, trained);
    check(*model, {c.shape.channels, c.shape.height, c.shape.width});
  }
};

TEST_P(Families, Dense) {
  check_family(0, Trained::Inner);
}
TEST_P(Families, TrainedInnerFactors) {
  check_family(3, Trained::Inner);
}
TEST_P(Families, TrainedOuterFactors) {
  check_family(3, Trained::Outer);
}
TEST_P(Families, FactorsInAGrid) {
  const Case& c = GetParam();
  for (const Trained trained : {Trained::Inner, Trained::Outer}) {
    const auto model = family(c.name, c.shape, c.width);
    for (const NamedWeight& w : model->weights()) {
      const std::int64_t grid =
          linalg::largest_grid(3, w.weight->sizes()[0], w.weight->sizes()[1], w.weight->n());
      testing::factor_weight(w, std::min<std::int64_t>(2, w.weight->n() / grid), grid);
    }
    prepare(*model, at::kDouble, trained);
    check(*model, {c.shape.channels, c.shape.height, c.shape.width});
  }
}
// Which a plain pass multiplies out.
TEST_P(Families, FactorsOfFullRank) {
  check_family(100'000, Trained::Outer);
}

INSTANTIATE_TEST_SUITE_P(
    ExampleGradients, Families,
    ::testing::Values(
        Case{"softmax", {1, 5, 5, 3}}, Case{"mlp", {1, 6, 6, 3}},
        Case{"lenet5", {3, 32, 32, 3}, 0.5}, Case{"cnn", {2, 8, 8, 3}},
        // The head's convolution gets images of 1x1 and of 2x2.
        Case{"vgg11", {3, 32, 32, 3}, 0.02}, Case{"vgg11", {3, 64, 64, 3}, 0.02}),
    [](const auto& test) { return test.param.name + std::to_string(test.param.shape.height); });

TEST(ExampleGradients, OfTokens) {
  const auto model = token_model();
  prepare(*model, at::kDouble, Trained::Inner);
  for (const std::int64_t tokens : {1, 2, 40}) {
    check(*model, {tokens, 6});
  }
  factor(*model, 2);
  for (const Trained trained : {Trained::Inner, Trained::Outer}) {
    prepare(*model, at::kDouble, trained);
    check(*model, {4, 6});
  }
}

// Strides, paddings, kernels that end beside the image's edge; biases or not.
TEST(ExampleGradients, OfConvolutions) {
  for (const std::int64_t stride : {1, 2, 3}) {
    for (const std::int64_t padding : {0, 2}) {
      for (const std::int64_t kernel : {1, 2, 5}) {
        const auto model = conv_model(
            2, {.kernel = kernel, .stride = stride, .padding = padding, .bias = kernel != 2});
        prepare(*model, at::kDouble, Trained::Inner);
        SCOPED_TRACE(formatted("{} {} {}", stride, padding, kernel));
        check(*model, {2, 6, 7});
      }
    }
  }
}

// The flat vectors lie as the parameters do, whatever their layout.
TEST(ExampleGradients, TakeTheParametersStrides) {
  for (const auto format : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous}) {
    const auto model = conv_model(3, {.kernel = 3});
    prepare(*model, at::kDouble, Trained::Inner);
    at::Tensor& conv = model->weights()[0].weight->dense;
    conv = conv.detach().contiguous(format).set_requires_grad(true);
    at::Tensor& fc = model->weights()[1].weight->dense;
    fc = fc.detach().t().contiguous().t().set_requires_grad(true);
    EXPECT_EQ(fc.stride(0), 1);
    check(*model, {3, 5, 5});
  }
}

TEST(ExampleGradients, InSinglePrecision) {
  const auto model = family("lenet5", {1, 28, 28, 3});
  prepare(*model, at::kFloat, Trained::Inner);
  check(*model, {1, 28, 28}, at::kFloat, 1e-4);
}

// A pass in bf16 with sums in fp32; the reference rounds its gradients too.
TEST(ExampleGradients, InBf16) {
  const auto model = family("cnn", {2, 8, 8, 3});
  prepare(*model, at::kFloat, Trained::Inner);
  const std::vector<Placed> trained = placed(*model);
  const at::Tensor images = at::randn({8, 2, 8, 8});
  const at::Tensor labels = at::randint(3, {8}, at::kLong);
  Tape tape;
  model->compute_in({at::kBFloat16, 0});
  const at::Tensor want = reference(*model, trained, images, labels);
  loss_of(*model, images, labels, &tape).backward();
  EXPECT_EQ(tape.maps.front().gradient->scalar_type(), at::kBFloat16);
  expect_gradients(*example_gradients(tape, trained), trained, want, 0.05);
}

// Parameters that are trained but not asked for count nowhere.
TEST(ExampleGradients, OfSomeParameters) {
  const auto model = family("mlp", {1, 6, 6, 3});
  prepare(*model, at::kDouble, Trained::Inner);
  std::vector<Placed> trained = placed(*model);
  const at::Tensor images = at::randn({8, 1, 6, 6}).to(at::kDouble);
  const at::Tensor labels = at::randint(3, {8}, at::kLong);
  Tape tape;
  loss_of(*model, images, labels, &tape).backward();
  for (const std::size_t left_out : {0, 3}) {  // a weight, a bias
    std::vector<Placed> some = trained;
    some.erase(some.begin() + static_cast<std::ptrdiff_t>(left_out));
    expect_gradients(
        *example_gradients(tape, some), some, reference(*model, some, images, labels), 1e-10);
  }
}

TEST(ExampleGradients, WantEachParameterOnce) {
  const auto model = family("mlp", {1, 6, 6, 3});
  prepare(*model, at::kFloat, Trained::Inner);
  std::vector<Placed> trained = placed(*model);
  const at::Tensor images = at::randn({2, 1, 6, 6});
  const at::Tensor labels = at::randint(3, {2}, at::kLong);
  Tape tape;
  const at::Tensor loss = loss_of(*model, images, labels, &tape);
  EXPECT_ANY_THROW(example_gradients(tape, trained));  // before backward
  loss.backward();
  const auto ready = example_gradients(tape, trained);
  EXPECT_ANY_THROW(ready->add(at::zeros({numel(trained)}), at::zeros({3})));
  trained.push_back({at::zeros({2}), 0});
  EXPECT_ANY_THROW(example_gradients(tape, trained));
  trained.pop_back();
  loss_of(*model, images, labels, &tape).backward();
  EXPECT_ANY_THROW(example_gradients(tape, trained));  // two passes
  tape.maps.clear();
  loss_of(*model, images, labels, &tape).backward();
  EXPECT_EQ(example_gradients(tape, trained)->size(), 2);
}

}  // namespace
}  // namespace abtrain::nn
