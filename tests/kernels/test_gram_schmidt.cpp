#include "ops/gram_schmidt.h"

#include "kernel_test.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(GramSchmidt) : public KernelTest {
 protected:
  static void expect_same_rows(const at::Tensor& flat, const std::vector<RowSet>& sets) {
    expect_same([&](const Form& form) {
      const at::Tensor rows = form.of(flat);
      gram_schmidt(rows, sets);
      return std::vector{rows};
    });
  }
};

TEST_F(ABT_KERNEL_SUITE(GramSchmidt), EqualsTheCpuToTheBit) {
  const at::Tensor flat = randn(2500, 3);
  flat.narrow(0, 1300, 60).zero_();  // rows that depend: zeros, and equal ones
  flat.narrow(0, 1460, 100).copy_(flat.narrow(0, 1360, 100));
  // Three orthonormal rows, two orthogonal to them, and one that depends.
  gram_schmidt(flat, {{1800, 5, 100}});
  flat.narrow(0, 2100, 200).mul_(3);
  flat.narrow(0, 2300, 100).zero_();
  expect_same_rows(
      flat,
      {{1, 3, 300}, {901, 2, 128}, {1300, 2, 30}, {1360, 3, 100}, {1700, 1, 1}, {1800, 6, 100, 3}});
}

TEST_F(ABT_KERNEL_SUITE(GramSchmidt), OfMoreMatricesThanALaunchTakesEqualsTheCpuToTheBit) {
  const at::Tensor flat = randn(200'000, 7);
  flat.narrow(0, 8000, 2000).zero_();
  std::vector<RowSet> sets;
  for (std::int64_t i = 0; i < large(200, 130); ++i) {
    sets.push_back({i * 1000, 1 + i % 4, 4 + i});
  }
  expect_same_rows(flat, sets);
}

// Not to the bit.
TEST_F(ABT_KERNEL_SUITE(GramSchmidt), OfSeveralPanelsIsCloseToTheCpu) {
  const auto work = [](const Form& form) {
    const at::Tensor rows = form.of(randn(30 * 500, 8));
    gram_schmidt(rows, {{0, 30, 500}});
    return std::vector{rows};
  };
  EXPECT_TRUE(by_kernels(work)[0].allclose(by_cpu(work)[0], 0, 1e-5));
}

}  // namespace
}  // namespace abtrain::ops
