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
      testing::python("gpt2.py", {"make", folder_->path(), GetParam().form});
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
  const TempFolder* folder_ = nullptr;
};

TEST_P(Gpt2, AgreesWithHuggingFaces) {
  const auto model = loaded("theirs.safetensors");
  weights::save_model(folder_->file("ours.safetensors"), *model);
  expect_has(testing::python("gpt2.py", {"check", folder_->path()}), "40 tensors agree");

  testing::require_gradients(*model);
  const at::Tensor batch = tokens();
  const at::Tensor logits = model->forward(batch, true);
  expect_logits(logits.detach(), "logits.safetensors");
  at::cross_entropy_loss(logits.narrow(1, 0, 24).flatten(0, 1), batch.narrow(1, 1, 24).flatten())
      .backward();
  const auto gradients = loaded("gradients.safetensors");
  testing::each_gradient(
      *model, *gradients,
      [](const std::string& name, const at::Tensor& got, const at::Tensor& want) {
        // Adding a number to all keys changes no attention.
        if (name.find("c_k.bias") == std::string::npos) {
          EXPECT_LT((got - want).norm().item<double>(), 1e-3 * want.norm().item<double>()) << name;
        }
      });
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
  testing::python("gpt2.py", {"decomposed", folder_->path()});
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
