#include "optim/gradient_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace abtrain::optim {

GradientHooks::GradientHooks(const ParameterBlock& block, std::function<void(std::size_t)> ready) {
  const auto shared = std::make_shared<std::function<void(std::size_t)>>(std::move(ready));
  for (std::size_t i = 0; i < block.parameters().size(); ++i) {
    // The node that accumulates the gradient. The tensor refers to it only weakly, so removals_
    // keeps it alive.
    const auto node = torch::autograd::impl::grad_accumulator(*block.parameters()[i].tensor);
    const auto key = node->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [shared, i](const auto& outputs, const auto&) {
          (*shared)(i);
          return outputs;
        }));
    removals_.emplace_back([node, key] { node->del_post_hook(key); });
  }
}

GradientHooks::~GradientHooks() {
  for (const auto& remove : removals_) {
    remove();
  }
}

}  // namespace abtrain::optim
