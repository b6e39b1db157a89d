#include "ops/pair_balance.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "device/devices.h"

namespace abtrain::ops {
namespace {

at::Tensor randn(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat);
}

TEST(PairBalance, IsTheSequentialRuleInFloat64) {
  for (const std::int64_t numel : {1, 7, 4096, 4097, 70001}) {
    for (const int workers : {1, 2, 5}) {
      const at::Tensor sum = at::zeros({numel});
      at::Tensor exact = at::zeros({numel}, at::kDouble);
      for (std::uint64_t pair = 0; pair < 8; ++pair) {
        const at::Tensor rows = randn({workers, numel}, 100 * pair + 1);
        const at::Tensor signs = at::empty({workers}, at::kChar);
        pair_balance(sum, rows, signs);
        for (int j = 0; j < workers; ++j) {
          const at::Tensor row = rows[j].to(at::kDouble);
          const int sign = at::dot(exact, row).item<double>() <= 0 ? 1 : -1;
          ASSERT_EQ(signs[j].item<int>(), sign) << numel << " " << j;
          exact.add_(row, sign);
        }
        EXPECT_LT(
            sum.to(at::kDouble).sub(exact).abs().max().item<double>(), 1e-5);
      }
    }
  }
}

TEST(PairBalance, TiesTakePlusAndNaNMinus) {
  const at::Tensor signs = at::empty({2}, at::kChar);
  pair_balance(
      at::tensor({0., 3.}, at::kFloat),
      at::tensor({2., 0., -1., 0.}, at::kFloat).view({2, 2}),
      signs);
  EXPECT_EQ(signs[0].item<int>(), 1);
  EXPECT_EQ(signs[1].item<int>(), 1);
  pair_balance(at::full({2}, NAN), at::full({2, 2}, 1.0f), signs);
  EXPECT_EQ(signs[0].item<int>(), -1);
}

TEST(PairBalanceErrors, RefuseWhatDoesNotFit) {
  const at::Tensor signs = at::empty({2}, at::kChar);
  EXPECT_THROW(
      pair_balance(at::zeros({3}), at::zeros({2, 4}), signs), std::logic_error);
  EXPECT_THROW(
      pair_balance(at::zeros({3}), at::zeros({3, 3}), signs), std::logic_error);
}

class GpuPairBalance : public ::testing::Test {
  void SetUp() override {
    if (device::cuda_devices().empty()) {
      GTEST_SKIP() << "no GPU";
    }
  }
};

TEST_F(GpuPairBalance, EqualsTheCpuToTheBit) {
  for (const std::int64_t numel : {1, 4097, 70001}) {
    at::Tensor results[2][2];
    for (int i = 0; i < 2; ++i) {
      const at::Device device = i == 0 ? at::kCPU : at::kCUDA;
      const at::Tensor sum = at::zeros({numel}).to(device);
      const at::Tensor signs = at::empty({5}, sum.options().dtype(at::kChar));
      for (std::uint64_t pair = 0; pair < 8; ++pair) {
        pair_balance(sum, randn({5, numel}, pair).to(device), signs);
      }
      results[i][0] = sum.cpu();
      results[i][1] = signs.cpu();
    }
    EXPECT_TRUE(results[0][0].equal(results[1][0])) << numel;
    EXPECT_TRUE(results[0][1].equal(results[1][1])) << numel;
  }
}

}  // namespace
}  // namespace abtrain::ops
