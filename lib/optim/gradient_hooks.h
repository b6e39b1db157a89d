// Tells, while a backward pass runs, which parameters' gradients are final.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "optim/parameter_block.h"

namespace abtrain::optim {

class GradientHooks {
 public:
  // Calls ready(i) after parameter i of the block has got all of its gradient in
  // a backward pass, in the thread that computes it. What it throws, the backward
  // pass throws. Holds while the block's tensors stay the same; the hooks go with
  // this object.
  GradientHooks(
      const ParameterBlock& block, std::function<void(std::size_t)> ready);
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;
  ~GradientHooks();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace abtrain::optim
