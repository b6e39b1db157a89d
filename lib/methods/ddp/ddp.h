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
  optim::ParameterBlock& block() override {
    return block_;
  }
  double learning_rate(std::int64_t t) override {
    return context_.schedule.at(t);
  }
  void before_backward(std::int64_t t) override {
    reduction_.before_backward(t);
  }
  bool sends_early() const override {
    return context_.world.size() > 1;
  }
  void reduce_gradients(std::int64_t t) override {
    reduction_.reduce(t);
  }
  comm::Communicator* gradient_group() override {
    return &context_.world;
  }
  void watch_gradients(compress::GradientWatch watch) override {
    reduction_.watch(std::move(watch));
  }
  compress::Costs costs() override {
    return reduction_.costs();
  }
  void after_step(std::int64_t) override {}
  void finish(std::int64_t t) override;
  void merge_into(nn::Model& target) override;
  void archive(state::Archive& archive) override;
  void regroup(std::vector<state::State>& old, std::int64_t t) override;
  comm::Communicator& replicas() override {
    return context_.world;
  }

 protected:
  std::vector<at::Tensor> replicated_state() override;

 private:
  void make_block();

  MethodContext context_;
  optim::ParameterBlock block_;
  GradientReduction reduction_;
};

}  // namespace abtrain::methods
