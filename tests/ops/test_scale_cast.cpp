#include "ops/scale_cast.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "device/devices.h"
#include "ops/cpu/convert.h"

namespace abtrain::ops {
namespace {

using Pair = std::pair<at::ScalarType, at::ScalarType>;
class ScaleCast : public ::testing::TestWithParam<Pair> {};

at::Tensor values(std::int64_t numel) {
  return at::randn({numel}, at::detail::createCPUGenerator(3), at::kFloat).mul_(100);
}

TEST_P(ScaleCast, EqualsLibTorch) {
  const auto [from, to] = GetParam();
  for (const std::int64_t numel : {0, 1, 7, 2048, 5001}) {
    const auto in = values(numel).to(from);
    const auto wanted = in.to(at::kFloat).mul(0.3f).to(to);
    for (const auto form : {scale_cast, scale_cast_by_promotion}) {
      const auto out = at::empty({numel}, to);
      form(in, 0.3f, out);
      EXPECT_TRUE(out.equal(wanted)) << numel;
    }
  }
}

// A product beyond the range of the input's 16 bits.
TEST(ScaleCastRange, ProductsInFp32AreNotBoundedByFp16) {
  const auto in = at::full({3}, 60000, at::kHalf);
  for (const auto form : {scale_cast, scale_cast_by_promotion}) {
    const auto out = at::empty({3}, at::kFloat);
    form(in, 4, out);
    EXPECT_TRUE(out.equal(in.to(at::kFloat).mul(4)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Dtypes, ScaleCast,
    ::testing::Values(
        Pair{at::kFloat, at::kFloat}, Pair{at::kFloat, at::kHalf}, Pair{at::kFloat, at::kBFloat16},
        Pair{at::kHalf, at::kFloat}, Pair{at::kBFloat16, at::kFloat},
        Pair{at::kBFloat16, at::kHalf}),
    [](const auto& test) {
      return std::string(c10::toString(test.param.first)) + "To" + c10::toString(test.param.second);
    });

// Its bits, or -1 for any NaN.
template <class T>
int pattern_of(T number) {
  return std::isnan(static_cast<float>(number)) ? -1 : number.x;
}

// Every 16-bit pattern there and back; both forms against c10's own.
template <class T>
void check_all_patterns() {
  std::vector<T> in(65536);
  for (int bits = 0; bits < 65536; ++bits) {
    in[bits].x = static_cast<std::uint16_t>(bits);
  }
  std::vector<float> wide(65536);
  to_float(in.data(), wide.data(), 65536);
  std::vector<T> back(65536);
  from_float(wide.data(), back.data(), 65536);
  for (int bits = 0; bits < 65536; ++bits) {
    const float wanted = static_cast<float>(in[bits]);
    ASSERT_TRUE(std::isnan(wanted) ? std::isnan(wide[bits]) : wide[bits] == wanted) << bits;
    ASSERT_EQ(pattern_of(back[bits]), pattern_of(in[bits])) << bits;
  }
}

TEST(ConvertCpu, EveryPattern) {
  check_all_patterns<c10::Half>();
  check_all_patterns<c10::BFloat16>();
}

TEST(ConvertCpu, RoundsAsC10DoesAcrossTheRange) {
  std::vector<float> in;
  for (std::uint32_t bits = 0; bits < 0xFFFF0000u; bits += 40961) {
    in.push_back(std::bit_cast<float>(bits));
  }
  const auto n = static_cast<std::int64_t>(in.size());
  std::vector<c10::Half> half(in.size());
  std::vector<c10::BFloat16> bfloat(in.size());
  from_float(in.data(), half.data(), n);
  from_float(in.data(), bfloat.data(), n);
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(pattern_of(half[i]), pattern_of(c10::Half(in[i]))) << in[i];
    ASSERT_EQ(pattern_of(bfloat[i]), pattern_of(c10::BFloat16(in[i]))) << in[i];
  }
}

TEST(ScaleCastErrors, RefusesOtherLengths) {
  EXPECT_THROW(scale_cast(values(3), 1, at::empty({4}, at::kHalf)), std::logic_error);
  EXPECT_THROW(scale_cast(values(3), 1, at::empty({3}, at::kInt)), std::logic_error);
}

TEST(GpuScaleCast, EqualsTheCpu) {
  if (device::cuda_devices().empty()) {
    GTEST_SKIP() << "no CUDA device here";
  }
  const auto types = {at::kFloat, at::kHalf, at::kBFloat16};
  for (const auto from : types) {
    for (const auto to : types) {
      const auto in = values(5001).to(from);
      const auto out = at::empty({5001}, to);
      scale_cast(in, 0.3f, out);
      const auto on_gpu = at::empty({5001}, out.options().device(at::kCUDA));
      scale_cast(in.to(at::kCUDA), 0.3f, on_gpu);
      EXPECT_TRUE(on_gpu.cpu().equal(out)) << from << " to " << to;
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
