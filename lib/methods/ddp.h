// Data parallel: every worker trains the dense model, gradients are averaged
// over the world each step. The baseline of all other methods.
#pragma once

#include "compress/reducer.h"
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
  void reduce_gradients(std::int64_t t) override;
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
  MethodContext context_;
  std::unique_ptr<compress::Reducer> reducer_;
  optim::ParameterBlock block_;
};

}  // namespace abtrain::methods
