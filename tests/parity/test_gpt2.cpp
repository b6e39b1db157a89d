// The gpt family beside Hugging Face's GPT-2: weights come in under its names
// and in its layout, logits and gradients agree, and our file loads there.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "factored_model.h"
#include "python.h"
#include "state/safetensors.h"
#include "temp_folder.h"
#include "weights/model_file.h"

namespace abtrain {
namespace {

struct Gpt2Case {
  const char* form;  // of the file's names
  bool split_qkv;
};

class Gpt2 : public ::testing::TestWithParam<Gpt2Case> {
 protected:
  // A form's files are made once, as importing transformers takes seconds.
  void SetUp() override {
    static std::map<std::string, TempFolder> folders;
    const auto [at, is_new] = folders.try_emplace(GetParam().form);
    folder_ = &at->second;
    if (is_new) {
      const testing::PythonResult made =
          testing::python("gpt2.py", {"make", folder_->path(), GetParam().form});
      ASSERT_EQ(made.status, 0) << made.text;
    }
  }
  static std::unique_ptr<nn::Model> fresh() {
    nn::ModelOptions options;
    options.name = "gpt-small";
    options.layers = 3;
    options.heads = 4;
    options.features = 48;
    options.context = 32;
    options.split_qkv = GetParam().split_qkv;
    return nn::make_model(options, {0, 0, 0, 97, 25});
  }
  std::unique_ptr<nn::Model> loaded(const char* file) const {
    auto model = fresh();
    weights::load_model(folder_->file(file), *model);
    return model;
  }
  at::Tensor tokens() const {
    return state::SafetensorsFile(folder_->file("batch.safetensors"))
        .read_integers("tokens", {2, 25})
        .to(at::kLong);
  }
  void expect_logits(const at::Tensor& logits, const char* file) const {
    const at::Tensor want = state::SafetensorsFile(folder_->file(file)).read("logits", {2, 25, 97});
    EXPECT_LT((logits - want).abs().max().item<double>(), 1e-4);
  }
  static void expect_close(const std::string& name, const at::Tensor& got, const at::Tensor& want) {
    EXPECT_LT((got - want).norm().item<double>(), 1e-3 * want.norm().item<double>()) << name;
  }
  const TempFolder* folder_ = nullptr;
};

TEST_P(Gpt2, AgreesWithHuggingFaces) {
  const auto model = loaded("theirs.safetensors");
  weights::save_model(folder_->file("ours.safetensors"), *model);
  const testing::PythonResult back = testing::python("gpt2.py", {"check", folder_->path()});
  EXPECT_EQ(back.status, 0) << back.text;
  EXPECT_NE(back.text.find("40 tensors agree"), std::string::npos) << back.text;

  for (const nn::NamedWeight& w : model->weights()) {
    w.weight->dense.requires_grad_();
  }
  for (const nn::NamedParameter& p : model->parameters()) {
    p.tensor->requires_grad_();
  }
  const at::Tensor batch = tokens();
  const at::Tensor logits = model->forward(batch, true);
  expect_logits(logits.detach(), "logits.safetensors");
  at::cross_entropy_loss(logits.narrow(1, 0, 24).flatten(0, 1), batch.narrow(1, 1, 24).flatten())
      .backward();
  const auto gradients = loaded("gradients.safetensors");
  for (std::size_t i = 0; i < model->weights().size(); ++i) {
    const nn::NamedWeight& w = model->weights()[i];
    expect_close(w.name, w.weight->dense.grad(), gradients->weights()[i].weight->dense);
  }
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    const nn::NamedParameter& p = model->parameters()[i];
    // Adding a number to all keys changes no attention.
    if (p.name.find("c_k.bias") == std::string::npos) {
      expect_close(p.name, p.tensor->grad(), *gradients->parameters()[i].tensor);
    }
  }
}

// As `decompose` leaves it: factors in the file's layout, the embedding's too.
TEST_P(Gpt2, ReadsWhatDecomposeHasCut) {
  if (GetParam().split_qkv) {
    GTEST_SKIP() << "factors of all three are none of a part";
  }
  const at::NoGradGuard no_grad;
  const std::string command = std::string("'") + ABTRAIN_PROGRAM + "' decompose '" +
                              folder_->file("theirs.safetensors") + "' -o '" +
                              folder_->file("cut.safetensors") + "' --rank 9 --keep-dense '*wpe'";
  ASSERT_EQ(std::system((command + " >/dev/null").c_str()), 0) << command;
  const auto model = loaded("cut.safetensors");
  for (const nn::NamedWeight& w : model->weights()) {
    EXPECT_EQ(w.weight->rank(), 9) << w.name;
  }
  const testing::PythonResult cut = testing::python("gpt2.py", {"decomposed", folder_->path()});
  ASSERT_EQ(cut.status, 0) << cut.text;
  expect_logits(model->forward(tokens(), false), "cut_logits.safetensors");
}

// Parts of a layer that has factors are stored one by one, others as one.
TEST_P(Gpt2, ComesBackFromAFileOfFactors) {
  const at::NoGradGuard no_grad;
  const auto model = loaded("theirs.safetensors");
  int i = 0;
  for (const nn::NamedWeight& w : model->weights()) {
    if (i++ % 5 == 1) {
      testing::factor_weight(w, 7);
    }
  }
  weights::save_model(folder_->file("ours.safetensors"), *model);
  const auto back = loaded("ours.safetensors");
  EXPECT_EQ(back->stored_parameters(), model->stored_parameters());
  EXPECT_LT(
      (back->forward(tokens(), false) - model->forward(tokens(), false)).abs().max().item<double>(),
      1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    All, Gpt2,
    ::testing::Values(Gpt2Case{"bare", false}, Gpt2Case{"prefixed", false}, Gpt2Case{"bare", true}),
    [](const auto& test) {
      return std::string(test.param.form) + (test.param.split_qkv ? "_split" : "");
    });

}  // namespace
}  // namespace abtrain
