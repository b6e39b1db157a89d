#include "ops/cross_entropy.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/randint.h>

#include <cmath>

#include "base/text.h"
#include "kernel_test.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(CrossEntropy) : public KernelTest {
 protected:
  static void expect_same_entropy(
      const at::Tensor& logits, const at::Tensor& labels, const EntropyOptions& options) {
    SCOPED_TRACE(formatted("{} classes, smoothing {}", logits.size(1), options.smoothing));
    expect_same([&](const Form& form) {
      const LossAndGradient result = cross_entropy(form.of(logits), form.of(labels), options);
      // CPU and kernels name a NaN of bf16 differently.
      return std::vector{result.loss, result.gradient.nan_to_num_(-7, INFINITY, -INFINITY)};
    });
  }
};

TEST_F(ABT_KERNEL_SUITE(CrossEntropy), EqualsTheCpuToTheBit) {
  // Rows that need one warp to the largest block, once around the lanes and more; aligned and not.
  for (const std::int64_t classes :
       {1L, 2L, 10L, 16L, 250L, 300L, 1000L, 4090L, large(4095, 15), 4096L, 4097L, 9001L,
        large(12'345, 17), large(50'304, 18)}) {
    const std::int64_t rows = classes <= 16 ? 64 : 5;
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor wide = randn(rows, classes, 1).mul_(5);
      wide[0][classes / 2].fill_(-INFINITY);
      const at::Tensor logits = wide.to(type);
      for (const double smoothing : {0.0, 0.1}) {
        const EntropyOptions all{smoothing, 0.5, {}};
        const EntropyOptions some{smoothing, 0.5, -100};
        const at::Tensor labels =
            at::randint(classes, {rows}, at::detail::createCPUGenerator(3), at::kLong);
        labels[0].fill_(classes - 1);
        // A sum of only two losses is the same in any order.
        expect_same_entropy(logits.narrow(0, 0, 2), labels.narrow(0, 0, 2), all);
        const at::Tensor two = at::full_like(labels, -100);
        two.narrow(0, 3, 2).copy_(labels.narrow(0, 3, 2));
        expect_same_entropy(logits, two, some);
        labels[1].fill_(-100);
        labels[2].fill_(classes);  // no class
        expect_same_entropy(logits, labels, all);
        expect_same_entropy(logits, labels, some);
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
