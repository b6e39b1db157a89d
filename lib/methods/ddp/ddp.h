// Data-parallel training: every worker trains the dense model, and the
// gradients are averaged over the world at each step. The baseline for all
// other methods.
#pragma once

#include "methods/method.h"

namespace abtrain::methods {

class DataParallel : public Method {
 public:
  explicit DataParallel(const MethodContext& context) : Method(context, context.reducer) {}
  void start() override;
  void archive(state::Archive& archive) override;
  void regroup(std::vector<state::State>& old, std::int64_t t) override;
  Stage now() override;

 protected:
  std::vector<at::Tensor> replicated_state() override;
};

}  // namespace abtrain::methods
