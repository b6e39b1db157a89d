// Data-parallel training: every worker trains the dense model, and the
// gradients are averaged over the world at each step. The baseline for all
// other methods.
#pragma once

#include "methods/gradient_reduction.h"
#include "methods/method.h"

namespace abtrain::methods {

class DataParallel : public Method {
 public:
  explicit DataParallel(const MethodContext& context);
  void start() override;
  void after_step(std::int64_t) override {}
  void finish(std::int64_t t) override;
  void merge_into(nn::Model& target) override;
  void archive(state::Archive& archive) override;
  void regroup(std::vector<state::State>& old, std::int64_t t) override;
  void watch_gradients(compress::GradientWatch watch) override {
    reduction_.watch(std::move(watch));
  }
  Stage now() override;
  compress::Costs costs() override {
    return reduction_.costs();
  }

 protected:
  GradientReduction* reduction() override {
    return &reduction_;
  }
  std::vector<at::Tensor> replicated_state() override;

 private:
  GradientReduction reduction_;
};

}  // namespace abtrain::methods
