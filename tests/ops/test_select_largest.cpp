#include "ops/select_largest.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "device/devices.h"

namespace abtrain::ops {
namespace {

// A stable sort by |x|, then the first k in their order.
std::vector<int> wanted_of(const at::Tensor& values, std::int64_t k) {
  const at::Tensor wide = values.to(at::kFloat);
  const auto* x = wide.const_data_ptr<float>();
  std::vector<int> order(static_cast<std::size_t>(values.numel()));
  std::iota(order.begin(), order.end(), 0);
  const auto size_of = [&](int i) {
    return std::pair(std::isnan(x[i]), std::isnan(x[i]) ? 0 : std::fabs(x[i]));
  };
  std::ranges::stable_sort(order, [&](int a, int b) { return size_of(a) > size_of(b); });
  order.resize(static_cast<std::size_t>(k));
  std::ranges::sort(order);
  return order;
}

void check(const at::Tensor& values, std::int64_t k) {
  const at::Tensor wanted = at::tensor(wanted_of(values, k), at::kInt);
  EXPECT_TRUE(select_largest(values, k).equal(wanted)) << k << " of " << values.numel();
  EXPECT_TRUE(select_largest_by_operators(values, k).equal(wanted))
      << k << " of " << values.numel();
}

class SelectLargest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  at::Tensor normal(std::int64_t numel) const {
    return at::randn({numel}, at::detail::createCPUGenerator(4), at::kFloat).to(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(
    Dtypes, SelectLargest, ::testing::Values(at::kFloat, at::kBFloat16),
    [](const auto& test) { return std::string(c10::toString(test.param)); });

TEST_P(SelectLargest, IsAStableSort) {
  for (const std::int64_t numel : {1, 2, 77, 4096, 30001}) {
    for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, numel / 3, numel - 1, numel}) {
      check(normal(numel), k);
    }
  }
}

TEST_P(SelectLargest, OfEqualOnesTakesTheFirst) {
  // Signs differ, sizes are few; zeros of both signs.
  const at::Tensor few = normal(5000).mul(2).round().div(2);
  for (const std::int64_t k : {1, 100, 2500, 4900, 5000}) {
    check(few, k);
  }
  check(at::tensor({0.f, -0.f, 0.f, -0.f}).to(GetParam()), 2);
}

TEST_P(SelectLargest, CountsNanAsTheLargest) {
  at::Tensor values = normal(1000);
  values[10] = std::numeric_limits<float>::infinity();
  values[700] = std::numeric_limits<float>::quiet_NaN();
  values[20] = -values[10];
  for (const std::int64_t k : {1, 2, 3, 4}) {
    check(values, k);
  }
}

// Neighbors in the last bit, and numbers below the smallest normal one.
TEST(SelectLargestBits, TellsNeighborsApart) {
  std::vector<float> numbers;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const std::uint32_t bits = (i * 7919) % 3000;
    numbers.push_back(std::bit_cast<float>(i % 3 == 0 ? bits : 0x3F800000 | bits));
  }
  for (const std::int64_t k : {1, 10, 1500, 2000, 2500}) {
    check(at::tensor(numbers), k);
  }
}

TEST(SelectLargestErrors, RefusesMoreThanThereAre) {
  EXPECT_THROW(select_largest(at::empty({3}), 4), std::logic_error);
  EXPECT_THROW(select_largest(at::empty({3}), -1), std::logic_error);
  EXPECT_THROW(select_largest(at::empty({3}, at::kHalf), 1), std::logic_error);
}

TEST(GpuSelectLargest, EqualsTheCpu) {
  if (device::cuda_devices().empty()) {
    GTEST_SKIP() << "no CUDA device here";
  }
  const at::Tensor values = at::randn({300001}, at::detail::createCPUGenerator(4), at::kFloat);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t k : {1, 1000, 150000, 300001}) {
      const at::Tensor in = values.to(type);
      EXPECT_TRUE(
          select_largest(in.to(at::Device(at::kCUDA, 0)), k).cpu().equal(select_largest(in, k)))
          << k;
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
