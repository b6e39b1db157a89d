#include "optim/gradient_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>
#include <vector>

namespace abtrain::optim {

namespace {

using Ready = std::function<void(std::size_t)>;

// Runs after the node that adds to a parameter's gradient.
class Hook : public torch::autograd::FunctionPostHook {
 public:
  Hook(std::shared_ptr<Ready> ready, std::size_t index) : ready_(std::move(ready)), index_(index) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list&) override {
    (*ready_)(index_);
    return outputs;
  }

 private:
  std::shared_ptr<Ready> ready_;
  std::size_t index_;
};

}  // namespace

struct GradientHooks::Impl {
  struct Added {
    std::shared_ptr<torch::autograd::Node> node;  // the tensor holds it weakly
    std::uintptr_t key;
  };
  std::vector<Added> added;
};

GradientHooks::GradientHooks(const ParameterBlock& block, std::function<void(std::size_t)> ready)
    : impl_(std::make_unique<Impl>()) {
  const auto shared = std::make_shared<Ready>(std::move(ready));
  for (std::size_t i = 0; i < block.parameters().size(); ++i) {
    auto node = torch::autograd::impl::grad_accumulator(*block.parameters()[i].tensor);
    const auto key = node->add_post_hook(std::make_unique<Hook>(shared, i));
    impl_->added.push_back({std::move(node), key});
  }
}

GradientHooks::~GradientHooks() {
  for (const Impl::Added& each : impl_->added) {
    each.node->del_post_hook(each.key);
  }
}

}  // namespace abtrain::optim
