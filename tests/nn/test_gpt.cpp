// The gpt family beside a reference in float64 that is written out term by
// term; tests/parity compares with Hugging Face's GPT-2.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "base/random.h"
#include "distance.h"
#include "error_of.h"
#include "nn/model.h"

namespace abtrain::nn {
namespace {

constexpr std::int64_t kVocabulary = 11;
constexpr std::int64_t kContext = 7;
constexpr data::ExampleShape kText{0, 0, 0, kVocabulary, kContext};

ModelOptions small_gpt() {
  ModelOptions options;
  options.name = "gpt-nano";
  options.layers = 2;
  options.heads = 2;
  options.features = 12;
  return options;
}

std::unique_ptr<Model> made(const ModelOptions& options) {
  auto model = make_model(options, kText);
  model->initialize(InitName::Kaiming, 5);
  // Fresh zeros and ones would hide mistakes.
  std::uint32_t stream = 0;
  for (const NamedParameter& p : model->parameters()) {
    Random random(6, RandomPurpose::Test, ++stream);
    auto* data = p.tensor->data_ptr<float>();
    for (std::int64_t i = 0; i < p.tensor->numel(); ++i) {
      data[i] += 0.3F * (random.uniform() - 0.5F);
    }
  }
  return model;
}

at::Tensor tokens(std::int64_t batch, std::int64_t count = kContext) {
  Random random(7, RandomPurpose::Test);
  const at::Tensor made = at::empty({batch, count}, at::kLong);
  for (std::int64_t i = 0; i < made.numel(); ++i) {
    made.data_ptr<std::int64_t>()[i] = random.below(kVocabulary);
  }
  return made;
}

// The network by its formulas, in float64.
class Reference {
 public:
  Reference(const Model& model, const ModelOptions& options) : options_(options) {
    for (const NamedWeight& w : model.weights()) {
      all_[w.name] = w.weight->merged().to(at::kDouble);
    }
    for (const NamedParameter& p : model.parameters()) {
      all_[p.name] = p.tensor->to(at::kDouble);
    }
  }
  // Logits of one row of tokens, T x vocabulary.
  at::Tensor logits(const at::Tensor& row) const {
    at::Tensor x = at::stack(each(row.size(0), [&](std::int64_t t) {
      const at::Tensor token = get("wte.weight")[row[t].item<std::int64_t>()];
      return all_.contains("wpe.weight") ? token + get("wpe.weight")[t] : token;
    }));
    for (std::int64_t i = 0; i < *options_.layers; ++i) {
      const std::string h = "h." + std::to_string(i) + ".";
      x = x + attention(norm(x, h + "ln_1"), h + "attn.");
      x = x + mlp(norm(x, h + "ln_2"), h + "mlp.");
    }
    const std::string head = options_.tied ? "wte.weight" : "lm_head.weight";
    return at::matmul(norm(x, "ln_f"), get(head).t());
  }

 private:
  template <class Make>
  static std::vector<at::Tensor> each(std::int64_t count, const Make& make) {
    std::vector<at::Tensor> all;
    for (std::int64_t t = 0; t < count; ++t) {
      all.push_back(make(t));
    }
    return all;
  }
  const at::Tensor& get(const std::string& name) const {
    return all_.at(name);
  }
  at::Tensor map(const at::Tensor& x, const std::string& layer) const {
    return at::matmul(x, get(layer + ".weight").t()) + get(layer + ".bias");
  }
  at::Tensor norm(const at::Tensor& x, const std::string& layer) const {
    const at::Tensor centered = x - x.mean(1, true);
    const at::Tensor variance = centered.square().mean(1, true);
    return centered / (variance + 1e-5).sqrt() * get(layer + ".weight") + get(layer + ".bias");
  }
  at::Tensor mlp(const at::Tensor& x, const std::string& prefix) const {
    const at::Tensor up = map(x, prefix + "c_fc");
    if (options_.activation == Activation::SwiGlu) {
      const at::Tensor gate = map(x, prefix + "c_gate");
      return map(gate * gate.sigmoid() * up, prefix + "c_proj");
    }
    const double scale = std::sqrt(2 / std::numbers::pi);
    return map(0.5 * up * (1 + (scale * (up + 0.044715 * up.pow(3))).tanh()), prefix + "c_proj");
  }
  // The pairs (i, i + d/2) of row t are turned by t / 10000^(2i/d).
  static at::Tensor turned(const at::Tensor& rows) {
    const at::Tensor out = rows.clone();
    const std::int64_t half = rows.size(1) / 2;
    for (std::int64_t t = 0; t < rows.size(0); ++t) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(t) /
                             std::pow(10000.0, static_cast<double>(i) / static_cast<double>(half));
        out[t][i] = rows[t][i] * std::cos(angle) - rows[t][i + half] * std::sin(angle);
        out[t][i + half] = rows[t][i] * std::sin(angle) + rows[t][i + half] * std::cos(angle);
      }
    }
    return out;
  }
  at::Tensor attention(const at::Tensor& x, const std::string& prefix) const {
    const std::int64_t features = *options_.features;
    const std::int64_t d = features / *options_.heads;
    std::vector<at::Tensor> qkv;
    if (options_.split_qkv) {
      for (const char* name : {"c_q", "c_k", "c_v"}) {
        qkv.push_back(map(x, prefix + name));
      }
    } else {
      const at::Tensor all = map(x, prefix + "c_attn");
      for (std::int64_t i = 0; i < 3; ++i) {
        qkv.push_back(all.narrow(1, i * features, features));
      }
    }
    std::vector<at::Tensor> heads;
    for (std::int64_t h = 0; h < *options_.heads; ++h) {
      at::Tensor q = qkv[0].narrow(1, h * d, d);
      at::Tensor k = qkv[1].narrow(1, h * d, d);
      if (options_.positions == Positions::Rotary) {
        q = turned(q);
        k = turned(k);
      }
      const at::Tensor scores = at::matmul(q, k.t()) / std::sqrt(static_cast<double>(d));
      const at::Tensor later = at::full_like(scores, 1).triu(1).to(at::kBool);
      heads.push_back(at::matmul(
          at::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), 1),
          qkv[2].narrow(1, h * d, d)));
    }
    return map(at::cat(heads, 1), prefix + "c_proj");
  }

  const ModelOptions& options_;
  std::map<std::string, at::Tensor> all_;
};

struct GptCase {
  const char* name;
  Positions positions = Positions::Learned;
  Activation activation = Activation::Gelu;
  bool tied = true;
  bool split_qkv = false;
};

class GptForms : public ::testing::TestWithParam<GptCase> {
 protected:
  static ModelOptions options() {
    const GptCase& c = GetParam();
    ModelOptions options = small_gpt();
    options.positions = c.positions;
    options.activation = c.activation;
    options.tied = c.tied;
    options.split_qkv = c.split_qkv;
    return options;
  }
};

TEST_P(GptForms, FollowTheFormulas) {
  const at::NoGradGuard no_grad;
  const ModelOptions form = options();
  const auto model = made(form);
  for (const std::int64_t count : {std::int64_t{1}, kContext}) {
    const at::Tensor batch = tokens(3, count);
    const at::Tensor logits = model->forward(batch, false);
    ASSERT_EQ(logits.sizes(), (std::vector<std::int64_t>{3, count, 11}));
    const Reference reference(*model, form);
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_LT(distance(logits[i], reference.logits(batch[i])), 1e-5);
    }
  }
}

TEST_P(GptForms, GradientsInFloatAreThoseInDouble) {
  const auto gradients = [&](at::ScalarType type) {
    const auto model = made(options());
    for (const NamedWeight& w : model->weights()) {
      w.weight->dense = w.weight->dense.to(type).requires_grad_();
    }
    for (const NamedParameter& p : model->parameters()) {
      *p.tensor = p.tensor->to(type).requires_grad_();
    }
    const at::Tensor batch = tokens(3);
    at::cross_entropy_loss(model->forward(batch, true).flatten(0, 1), batch.flatten()).backward();
    std::map<std::string, at::Tensor> all;
    for (const NamedWeight& w : model->weights()) {
      all[w.name] = w.weight->dense.grad();
    }
    for (const NamedParameter& p : model->parameters()) {
      all[p.name] = p.tensor->grad();
    }
    return all;
  };
  const auto exact = gradients(at::kDouble);
  for (const auto& [name, gradient] : gradients(at::kFloat)) {
    ASSERT_TRUE(gradient.defined()) << name;
    EXPECT_LT(
        distance(gradient, exact.at(name)),
        1e-5 * (1e-2 + exact.at(name).abs().max().item<double>()))
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, GptForms,
    ::testing::Values(
        GptCase{"Gpt2"}, GptCase{.name = "SplitQkv", .split_qkv = true},
        GptCase{.name = "UntiedHead", .tied = false},
        GptCase{.name = "Rotary", .positions = Positions::Rotary},
        GptCase{.name = "SwiGlu", .activation = Activation::SwiGlu},
        GptCase{"AllOthers", Positions::Rotary, Activation::SwiGlu, false, true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Gpt, ParameterCounts) {
  const auto count = [](const ModelOptions& options, const data::ExampleShape& shape) {
    return make_model(options, shape)->dense_parameters();
  };
  ModelOptions small;
  small.name = "gpt-small";
  // As Hugging Face counts gpt2: 124 M.
  EXPECT_EQ(count(small, {0, 0, 0, 50257, 1024}), 124'439'808);
  EXPECT_EQ(
      count(small_gpt(), kText),
      (11 + 7) * 12 + 2 * (13 * 36 + 13 * 12 + 13 * 48 + 49 * 12 + 4 * 12) + 2 * 12);
  ModelOptions other = small_gpt();
  other.positions = Positions::Rotary;
  other.activation = Activation::SwiGlu;  // 32 features inside
  other.tied = false;
  EXPECT_EQ(
      count(other, kText),
      2 * 11 * 12 + 2 * (13 * 36 + 13 * 12 + 2 * 13 * 32 + 33 * 12 + 4 * 12) + 2 * 12);
}

TEST(Gpt, WidthScalesTheFeaturesByWholeHeads) {
  ModelOptions options = small_gpt();
  options.heads = 4;
  options.features = 128;
  const auto features = [&](double width) {
    options.width = width;
    return made(options)->parameters().front().tensor->size(1);
  };
  EXPECT_EQ(features(1), 128);
  EXPECT_EQ(features(2), 256);
  EXPECT_EQ(features(0.51), 64);
  EXPECT_EQ(features(0.001), 4);
}

TEST(Gpt, FactorsAllMatricesButTheHead) {
  const auto layers = [](const ModelOptions& options) {
    std::vector<std::string> names;
    const auto model = make_model(options, kText);
    for (const NamedWeight& w : factorable_weights(*model, {"default"})) {
      names.push_back(w.layer);
    }
    return names;
  };
  ModelOptions options = small_gpt();
  options.layers = 1;
  const std::vector<std::string> fused = {
      "h.0.attn.c_attn", "h.0.attn.c_proj", "h.0.mlp.c_fc", "h.0.mlp.c_proj"};
  EXPECT_EQ(layers(options), fused);
  options.tied = false;
  EXPECT_EQ(layers(options), fused);
  options.split_qkv = true;
  EXPECT_EQ(layers(options).size(), 6U);
}

TEST(Gpt, LooksAtNoLaterToken) {
  const at::NoGradGuard no_grad;
  const auto model = made(small_gpt());
  const at::Tensor batch = tokens(2);
  const at::Tensor logits = model->forward(batch, false);
  const at::Tensor other = batch.clone();
  other.select(1, 4).add_(1).remainder_(kVocabulary);
  const at::Tensor changed = model->forward(other, false);
  EXPECT_EQ(distance(logits.narrow(1, 0, 4), changed.narrow(1, 0, 4)), 0);
  EXPECT_GT(distance(logits.select(1, 4), changed.select(1, 4)), 1e-3);
}

TEST(Gpt, DropsInTrainingOnly) {
  const at::NoGradGuard no_grad;
  ModelOptions options = small_gpt();
  options.drop_rate = 0.5;
  const auto model = made(options);
  const auto plain = made(small_gpt());
  const at::Tensor batch = tokens(2);
  EXPECT_TRUE(at::equal(model->forward(batch, false), plain->forward(batch, false)));
  const auto trained = [&](std::uint64_t seed) {
    model->seed_dropout(seed);
    return model->forward(batch, true);
  };
  EXPECT_TRUE(at::equal(trained(1), trained(1)));
  EXPECT_FALSE(at::equal(trained(1), trained(2)));
}

TEST(Gpt, RefusesWhatDoesNotFit) {
  const auto refusal = [](auto change, const data::ExampleShape& shape) {
    ModelOptions options = small_gpt();
    change(options);
    return expect_error([&] { make_model(options, shape); }, ErrorKind::Config);
  };
  EXPECT_EQ(
      refusal([](ModelOptions&) {}, {}),
      "model.name: gpt-nano takes text, but the data set has images");
  EXPECT_EQ(
      refusal([](ModelOptions& o) { o.name = "mlp"; }, kText),
      "model.name: mlp takes images, but the data set has text");
  EXPECT_EQ(
      refusal([](ModelOptions& o) { o.heads = 5; }, kText),
      "model.heads: expected a divisor of the 12 features, got 5");
  EXPECT_EQ(
      refusal([](ModelOptions& o) { o.context = 6; }, kText),
      "model.context: expected at least data.context (7), got 6");
  EXPECT_EQ(
      refusal(
          [](ModelOptions& o) {
            o.positions = Positions::Rotary;
            o.heads = 4;
          },
          kText),
      "model.positions: rotary turns pairs of a head's features; expected an "
      "even number of them, got 3");
}

}  // namespace
}  // namespace abtrain::nn
