#include "ops/pair_signs.h"

#include "kernel_test.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(PairSigns) : public KernelTest {};

TEST_F(ABT_KERNEL_SUITE(PairSigns), EqualTheCpu) {
  for (const std::int64_t rows : {1L, 2L, 33L, 37L, large(kMaxPairRows, 256)}) {
    SCOPED_TRACE(rows);
    expect_same([&](const Form& form) {
      const at::Tensor signs = form.blank({rows}, at::kChar);
      pair_signs(form.of(randn(rows * (rows + 1) / 2, 1)), signs);
      return std::vector{signs};
    });
  }
}

}  // namespace
}  // namespace abtrain::ops
