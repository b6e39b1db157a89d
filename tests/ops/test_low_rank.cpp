#include "ops/low_rank.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include <limits>

#include "device/devices.h"
#include "tensors.h"

namespace abtrain::ops {
namespace {

double distance(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kDouble).sub(b).abs().max().item<double>();
}

void check_on(at::Device device, double tolerance) {
  for (const std::int64_t rank : {1, 2, 3, 4, 5, 8, 11}) {
    for (const auto& [n, m] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 13}, {64, 200}}) {
      const at::Tensor p = randn(rank, n, 1), q = randn(rank, m, 2);
      const at::Tensor exact = at::matmul(p.to(at::kDouble).t(), q.to(at::kDouble));
      // What was there does not matter.
      const at::Tensor out =
          at::full({n, m}, std::numeric_limits<float>::quiet_NaN(), at::TensorOptions(device));
      low_rank_product(p.to(device), q.to(device), out);
      EXPECT_LT(distance(out.cpu(), exact), tolerance * rank) << n << " " << m;
      const at::Tensor from = randn(n, m, 3);
      out.copy_(from);
      subtract_low_rank_product(p.to(device), q.to(device), out);
      EXPECT_LT(distance(out.cpu(), from.to(at::kDouble).sub(exact)), tolerance * rank)
          << n << " " << m;
    }
  }
}

TEST(LowRank, IsTheProduct) {
  check_on(at::kCPU, 2e-6);
}

// A number's place in its row, and so in a vector, changes no bit of it.
TEST(LowRank, HasTheSameBitsAtEveryPlace) {
  const at::Tensor p = randn(6, 10, 1), q = randn(6, 41, 2);
  const at::Tensor whole = at::empty({10, 41});
  low_rank_product(p, q, whole);
  for (std::int64_t j = 0; j < 41; ++j) {
    const at::Tensor column = at::empty({10, 1});
    low_rank_product(p, q.narrow(1, j, 1).contiguous(), column);
    EXPECT_TRUE(column.equal(whole.narrow(1, j, 1))) << j;
  }
}

TEST(LowRankErrors, RefuseWhatDoesNotFit) {
  const at::Tensor out = at::empty({3, 4});
  EXPECT_THROW(low_rank_product(randn(2, 3, 1), randn(2, 5, 1), out), std::logic_error);
  EXPECT_THROW(subtract_low_rank_product(randn(2, 3, 1), randn(1, 4, 1), out), std::logic_error);
  EXPECT_THROW(low_rank_product(randn(3, 2, 1).t(), randn(2, 4, 1), out), std::logic_error);
}

TEST(GpuLowRank, IsTheProduct) {
  if (device::cuda_devices().empty()) {
    GTEST_SKIP() << "no CUDA device here";
  }
  check_on(at::Device(at::kCUDA, 0), 2e-6);
}

}  // namespace
}  // namespace abtrain::ops
