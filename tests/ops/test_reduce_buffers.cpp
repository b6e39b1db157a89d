#include "ops/reduce_buffers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

namespace abtrain::ops {
namespace {

std::vector<at::Tensor> random_buffers(
    int n, std::int64_t numel, at::ScalarType type, std::uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  std::vector<at::Tensor> all;
  for (int b = 0; b < n; ++b) {
    all.push_back(
        at::isFloatingType(type) ? at::randn({numel}, generator, at::kDouble).to(type)
                                 : at::randint(0, 100, {numel}, generator, at::kLong).to(type));
  }
  return all;
}

// One element at a time, in the order of the buffers, in the wide type.
template <class T, class Wide>
at::Tensor reference(const std::vector<at::Tensor>& in, ReduceOp op) {
  at::Tensor out = at::empty_like(in[0]);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    Wide sum = static_cast<Wide>(in[0].const_data_ptr<T>()[i]);
    for (std::size_t b = 1; b < in.size(); ++b) {
      const Wide x = static_cast<Wide>(in[b].const_data_ptr<T>()[i]);
      sum = op == ReduceOp::Max ? std::max(sum, x) : sum + x;
    }
    if (op == ReduceOp::Mean) {
      sum /= static_cast<Wide>(in.size());
    }
    out.mutable_data_ptr<T>()[i] = static_cast<T>(sum);
  }
  return out;
}

at::Tensor reference(const std::vector<at::Tensor>& in, ReduceOp op) {
  switch (in[0].scalar_type()) {
    case at::kDouble:
      return reference<double, double>(in, op);
    case at::kHalf:
      return reference<c10::Half, float>(in, op);
    case at::kBFloat16:
      return reference<c10::BFloat16, float>(in, op);
    case at::kInt:
      return reference<int, std::int64_t>(in, op);
    case at::kLong:
      return reference<std::int64_t, std::int64_t>(in, op);
    case at::kByte:
      return reference<std::uint8_t, std::int64_t>(in, op);
    default:
      return reference<float, float>(in, op);
  }
}

class ReduceBuffers : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(ReduceBuffers, EqualsTheSequentialSumToTheBit) {
  for (const std::int64_t numel : {0, 1, 7, 2047, 2048, 2049, 10001}) {
    for (const int n : {1, 2, 3, 8}) {
      for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max}) {
        if (op == ReduceOp::Mean && !at::isFloatingType(GetParam())) {
          continue;
        }
        const auto in = random_buffers(n, numel, GetParam(), 7);
        const auto wanted = reference(in, op);
        reduce_buffers(in, 0, numel, in, 0, op);
        for (const at::Tensor& buffer : in) {
          EXPECT_TRUE(buffer.equal(wanted)) << numel << " x " << n;
        }
      }
    }
  }
}

TEST_P(ReduceBuffers, TouchesOnlyItsRange) {
  const auto in = random_buffers(3, 5000, GetParam(), 8);
  const auto wanted = reference(in, ReduceOp::Sum);
  const auto before = in[1].clone();
  const at::Tensor out = at::full({3001}, 9, in[0].options());
  reduce_buffers(in, 1500, 2500, {out}, 500, ReduceOp::Sum);
  EXPECT_TRUE(out.narrow(0, 500, 2500).equal(wanted.narrow(0, 1500, 2500)));
  EXPECT_TRUE((out.narrow(0, 0, 500).eq(9)).all().item<bool>());
  EXPECT_TRUE((out.narrow(0, 3000, 1).eq(9)).all().item<bool>());
  EXPECT_TRUE(in[1].equal(before));
}

INSTANTIATE_TEST_SUITE_P(
    Dtypes, ReduceBuffers,
    ::testing::Values(
        at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kByte),
    [](const auto& test) { return std::string(c10::toString(test.param)); });

TEST(ReduceBuffersValues, AccumulatesWiderThanItHolds) {
  // 2048 + 1 is 2048 in fp16, so a sum in fp16 would stay there.
  const std::vector<at::Tensor> in = {
      at::full({3}, 2048, at::kHalf), at::full({3}, 1, at::kHalf), at::full({3}, 1, at::kHalf)};
  reduce_buffers(in, 0, 3, in, 0, ReduceOp::Sum);
  EXPECT_EQ(in[2][1].item<float>(), 2050);
  const std::vector<at::Tensor> big = {
      at::full({1}, 60000, at::kHalf), at::full({1}, 60000, at::kHalf)};
  reduce_buffers(big, 0, 1, big, 0, ReduceOp::Mean);
  EXPECT_EQ(big[0][0].item<float>(), at::full({1}, 60000, at::kHalf).item<float>());
}

TEST(ReduceBuffersValues, IntegersWrapAroundAndCompareWithTheirSign) {
  const auto bytes = [](int x) { return at::full({3}, x, at::kByte); };
  std::vector<at::Tensor> in = {bytes(200), bytes(100), bytes(7)};
  const at::Tensor out = bytes(0);
  reduce_buffers(in, 0, 3, {out}, 0, ReduceOp::Sum);
  EXPECT_EQ(out[1].item<int>(), 307 - 256);
  reduce_buffers(in, 0, 3, {out}, 0, ReduceOp::Max);
  EXPECT_EQ(out[1].item<int>(), 200);
  constexpr int kMax = std::numeric_limits<int>::max();
  in = {at::full({3}, kMax, at::kInt), at::full({3}, 5, at::kInt)};
  const at::Tensor sum = at::full({3}, 0, at::kInt);
  reduce_buffers(in, 0, 3, {sum}, 0, ReduceOp::Sum);
  EXPECT_EQ(sum[2].item<int>(), std::numeric_limits<int>::min() + 4);
  in[0].fill_(-3);
  reduce_buffers(in, 0, 3, {sum}, 0, ReduceOp::Max);
  EXPECT_EQ(sum[2].item<int>(), 5);
}

TEST(ReduceBuffersValues, AMaximumShowsANan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int place : {0, 1, 2}) {
    std::vector<at::Tensor> in;
    for (int b = 0; b < 3; ++b) {
      in.push_back(at::full({2}, b == place ? nan : 5.0f));
    }
    reduce_buffers(in, 0, 2, in, 0, ReduceOp::Max);
    EXPECT_TRUE(in[0].isnan().all().item<bool>()) << place;
  }
}

TEST(ReduceBuffersValues, RefusesWhatDoesNotFit) {
  const auto a = at::zeros({4});
  EXPECT_THROW(reduce_buffers({a}, 2, 3, {a}, 0, ReduceOp::Sum), std::logic_error);
  EXPECT_THROW(
      reduce_buffers({a, at::zeros({4}, at::kHalf)}, 0, 4, {a}, 0, ReduceOp::Sum),
      std::logic_error);
  const auto i = at::zeros({4}, at::kInt);
  EXPECT_THROW(reduce_buffers({i}, 0, 4, {i}, 0, ReduceOp::Mean), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
