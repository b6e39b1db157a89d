#include "ops/adagrad.h"

#include "code_buffers.h"

namespace abtrain::ops {
namespace {

// Against its formula in tests/optim; here only in all forms.
ABT_OP_TEST(AdagradForms, LeaveTheSameBits) {
  for (CodeBlocks& blocks : block_sets(forms)) {
    const std::int64_t numel = blocks.end();
    const at::Tensor values = randn(5, numel, 30);
    values[0][numel / 2].fill_(-0.0f);
    values[1][numel - 1].fill_(NAN);
    values[1][numel / 3].fill_(INFINITY);
    values[2].abs_();
    // Mirror descent, dual from 0, from x.
    for (const auto& [kind, sparse, steps, divides] :
         cases({0, 1, 2}, {0.0f, 0.2f}, {1.0f, 7.0f}, {false, true})) {
      forms.same([&](const Form& form) {
        const auto scalar = [&](float value) { return form.of(at::full({1}, value)); };
        const std::vector<at::Tensor> all = form.of(values).unbind();
        adagrad_step(
            {all[0], all[1], all[2], kind > 0 ? all[3] : at::Tensor(),
             kind > 1 ? all[4] : at::Tensor()},
            blocks, form.of(at::full({blocks.tensors()}, sparse)), scalar(0.3f), scalar(steps),
            divides ? scalar(1.7f) : at::Tensor(), 1e-3);
        return all;
      });
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
