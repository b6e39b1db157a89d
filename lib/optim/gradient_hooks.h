// Reports which parameters' gradients are final while a backward pass runs.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "optim/parameter_block.h"

namespace abtrain::optim {

class GradientHooks {
 public:
  // Calls ready(i) once a backward pass has added the whole gradient of the block's parameter i, on
  // the autograd thread that computes it. If ready() throws, the backward pass throws the same
  // exception. Valid as long as the block's tensors stay the same; the destructor removes the
  // hooks.
  GradientHooks(const ParameterBlock& block, std::function<void(std::size_t)> ready);
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;
  ~GradientHooks();

 private:
  std::vector<std::function<void()>> removals_;
};

}  // namespace abtrain::optim
