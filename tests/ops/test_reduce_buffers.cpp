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

// The reduction of buffers that are each filled with one number.
at::Tensor reduced(const std::vector<double>& numbers, at::ScalarType type, ReduceOp op) {
  std::vector<at::Tensor> in;
  for (const double number : numbers) {
    in.push_back(at::full({3}, number, type));
  }
  const at::Tensor out = at::empty_like(in[0]);
  reduce_buffers(in, 0, 3, {out}, 0, op);
  return out[1];
}

TEST(ReduceBuffersValues, AccumulatesWiderThanItHolds) {
  // 2048 + 1 is 2048 in fp16, so a sum in fp16 would stay there.
  EXPECT_EQ(reduced({2048, 1, 1}, at::kHalf, ReduceOp::Sum).item<float>(), 2050);
  EXPECT_EQ(
      reduced({60000, 60000}, at::kHalf, ReduceOp::Mean).item<float>(),
      at::full({1}, 60000, at::kHalf).item<float>());
}

TEST(ReduceBuffersValues, IntegersWrapAroundAndCompareWithTheirSign) {
  EXPECT_EQ(reduced({200, 100, 7}, at::kByte, ReduceOp::Sum).item<int>(), 307 - 256);
  EXPECT_EQ(reduced({200, 100, 7}, at::kByte, ReduceOp::Max).item<int>(), 200);
  EXPECT_EQ(
      reduced({std::numeric_limits<int>::max(), 5}, at::kInt, ReduceOp::Sum).item<int>(),
      std::numeric_limits<int>::min() + 4);
  EXPECT_EQ(reduced({-3, 5}, at::kInt, ReduceOp::Max).item<int>(), 5);
}

TEST(ReduceBuffersValues, AMaximumShowsANan) {
  for (const std::size_t place : {0, 1, 2}) {
    std::vector<double> numbers = {5, 5, 5};
    numbers[place] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(reduced(numbers, at::kFloat, ReduceOp::Max).isnan().item<bool>()) << place;
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
