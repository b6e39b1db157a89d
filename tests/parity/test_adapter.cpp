// Adapters beside those of Hugging Face's PEFT: steps of LoRA and PiSSA with AdamW, and files that
// either one reads.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "python.h"
#include "state/safetensors.h"
#include "temp_folder.h"
#include "toy_run.h"
#include "weights/adapter.h"
#include "weights/export.h"
#include "weights/initial_model.h"
#include "weights/model_file.h"

namespace abtrain {
namespace {

using methods::AdapterStart;

config::RunOptions run_of(AdapterStart start, double alpha) {
  config::RunOptions o = testing::toy_options(1, 1);
  o.method.warmup_steps = Duration::steps(0);
  o.method.full_rank_steps = Duration::steps(0);
  o.method.remainder = methods::Remainder::Freeze;
  o.method.trains = methods::Trains::Both;
  o.method.start = start;
  o.method.alpha = alpha;
  o.model.frozen = {"*"};
  o.optimizer = {.name = "adamw", .lr = 1e-2, .weight_decay = 0};
  o.schedule.name = optim::ScheduleName::Constant;
  o.order.name = "sequential";
  o.train.clip_norm = 0;
  o.train.steps = 10;
  o.evaluate.every = Duration::steps(0);
  return o;
}

class Adapter : public ::testing::Test {
 protected:
  Adapter() : dataset_(testing::toy_dataset(96)) {
    const auto& images = std::get<data::ByteImages>(dataset_.train);
    x_ = (images.pixels.flatten(1).to(at::kFloat) / 255 - dataset_.mean[0]) / dataset_.std[0];
    state::write_safetensors(
        folder_ / "x.safetensors", {{"x", x_}, {"y", images.labels.to(at::kInt)}}, {});
  }
  // Trains, with the base and the first factors in files.
  std::unique_ptr<nn::Model> trained(config::RunOptions& o) {
    o.data.batch_size = 96;
    base_ = weights::make_initial_model(o, dataset_);
    weights::save_model(folder_ / "base.safetensors", *base_, {.merged = true});
    train::TrainInputs inputs{o, dataset_, {}, at::kCPU};
    inputs.initialize = [&](nn::Model& model) { model.copy_from(*base_); };
    inputs.hooks.before_step = [&](int, std::int64_t t, nn::Model& model) {
      if (t > 0) {
        return;
      }
      std::vector<state::NamedTensor> first;
      for (const nn::NamedWeight& w : model.weights()) {
        if (w.weight->is_factored()) {
          first.push_back({w.layer + ".lora_A", w.weight->inner.detach().clone()});
          first.push_back({w.layer + ".lora_B", w.weight->outer.detach().clone()});
          rest_[w.layer] = w.weight->rest;
        }
      }
      state::write_safetensors(folder_ / "first.safetensors", first, {});
    };
    return std::move(train::train_threads(inputs)[0].model);
  }

  const TempFolder folder_;
  data::Dataset dataset_;
  at::Tensor x_;
  std::unique_ptr<nn::Model> base_;
  std::map<std::string, at::Tensor> rest_;
};

double error_of(const at::Tensor& got, const at::Tensor& wanted) {
  const at::Tensor difference = got.detach().to(at::kDouble) - wanted.to(at::kDouble);
  return (difference.norm() / wanted.to(at::kDouble).norm()).item<double>();
}

TEST_F(Adapter, StepsEqualThoseOfPeft) {
  for (const auto start : {AdapterStart::Zero, AdapterStart::Svd}) {
    const bool is_lora = start == AdapterStart::Zero;
    config::RunOptions o = run_of(start, is_lora ? 10 : 0);
    const auto model = trained(o);
    testing::python(
        "adapter.py", {"steps", folder_.path(), is_lora ? "true" : "pissa", "10", "0.01",
                       is_lora ? "10" : "5", "5"});
    const state::SafetensorsFile rest(folder_ / "rest.safetensors");
    const state::SafetensorsFile after(folder_ / "after.safetensors");
    for (const nn::NamedWeight& w : model->weights()) {
      const at::Tensor wanted = after.read(w.name, w.weight->sizes());
      const at::Tensor got = w.weight->merged();
      if (w.weight->is_factored()) {
        EXPECT_LT(error_of(rest_[w.layer], rest.read(w.layer, w.weight->sizes())), 1e-5);
        // Of what ten steps change.
        const at::Tensor dense =
            std::ranges::find(base_->weights(), w.name, &nn::NamedWeight::name)->weight->dense;
        EXPECT_GT(error_of(got, dense), 0.05);
        EXPECT_LT(error_of(got, wanted), 1e-5) << w.name;
      } else {
        EXPECT_TRUE(at::equal(got, wanted));
      }
    }
  }
}

TEST_F(Adapter, PeftLoadsWhatWasExported) {
  for (const auto start : {AdapterStart::Zero, AdapterStart::Svd}) {
    for (const bool trains_head : {false, true}) {
      config::RunOptions o = run_of(start, start == AdapterStart::Zero ? 10 : 0);
      if (trains_head) {
        o.model.frozen.emplace_back("!fc3");
      }
      const auto model = trained(o);
      const std::string file = folder_ / "run.safetensors";
      weights::save_model(file, *model);
      const auto loaded = weights::model_of_run(o, dataset_, file);
      const std::string out = folder_ / "adapter";
      weights::save_adapter(out, *loaded, "base");
      testing::python("adapter.py", {"load", folder_.path(), out});
      const at::NoGradGuard no_grad;
      const at::Tensor wanted = model->forward(x_.view({96, 1, 8, 8}), false);
      const at::Tensor got = state::SafetensorsFile(folder_ / "outputs.safetensors")
                                 .read("outputs", wanted.sizes().vec());
      EXPECT_LT((got - wanted).abs().max().item<double>(), 1e-5);

      // And so do we: a run that begins with it begins where that one ended.
      o.model.adapter = out;
      o.method.start = AdapterStart::Zero;
      o.method.alpha = 0;
      o.method.rank.rank = start == AdapterStart::Zero ? 5 : 10;
      const auto again = weights::make_initial_model(o, dataset_);
      const at::Tensor ours = again->forward(x_.view({96, 1, 8, 8}), false);
      EXPECT_LT((ours - wanted).abs().max().item<double>(), 1e-5);
      o.method.name = "ddp";
      const auto whole = weights::make_initial_model(o, dataset_);
      EXPECT_FALSE(nn::is_adapted(*whole));
      const at::Tensor dense = whole->forward(x_.view({96, 1, 8, 8}), false);
      EXPECT_LT((dense - wanted).abs().max().item<double>(), 1e-5);
    }
  }
}

}  // namespace
}  // namespace abtrain
