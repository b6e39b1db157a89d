#include "ops/level_codes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/magnitudes.h"
#include "tensors.h"

namespace abtrain::ops {
namespace {

// Tensors that begin anywhere, several in one byte, one over many windows.
std::vector<std::int64_t> odd_sizes() {
  return {1, 2, 5, 4099, 1, 9001, 30};
}

// One number of `each` a tensor, repeated for its numbers.
at::Tensor spread(const at::Tensor& each, const std::vector<std::int64_t>& sizes) {
  return each.repeat_interleave(at::tensor(sizes, at::kLong));
}

std::vector<int> unpacked(const at::Tensor& codes, std::int64_t numel) {
  std::vector<int> result;
  const auto* bytes = codes.const_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < numel; ++i) {
    const int code = bytes[i / 4] >> (6 - 2 * (i % 4)) & 3;
    EXPECT_NE(code, 1);
    result.push_back(code == 3 ? 1 : code == 2 ? -1 : 0);
  }
  return result;
}

// The specification's example of the threshold quantizer, c = 0.7.
TEST(LevelCodes, AreThoseOfTheWorkedExample) {
  LevelTable table({4});
  const at::Tensor u = at::tensor({.1, -.2, .9, -1.2}, at::kFloat);
  const at::Tensor cuts = at::full({1}, .7f * .6f);
  const at::Tensor record = at::empty({table.record_bytes()}, at::kByte);
  ASSERT_EQ(record.numel(), 5);
  const at::Tensor sums = at::empty({2});
  const at::Tensor codes = record.narrow(0, 4, 1);
  magnitudes(u, table.blocks(), Statistic::Above, sums, cuts);
  EXPECT_FLOAT_EQ(sums[0].item<float>(), 2.1f);
  EXPECT_EQ(sums[1].item<float>(), 2);
  record.narrow(0, 0, 4).view(at::kFloat).fill_(1.05f);
  encode_above(u, table, cuts, CodeForm::TwoBits, codes, at::full({1}, 1.05f));
  EXPECT_EQ(record[4].item<int>(), 0b00'00'11'10);
  const at::Tensor estimate = at::empty({4});
  average_levels(record, 1, table, estimate);
  EXPECT_TRUE(estimate.equal(at::tensor({0., 0., 1.05, -1.05}, at::kFloat)));
  EXPECT_TRUE(u.allclose(at::tensor({.1, -.2, -.15, -.15}, at::kFloat)));
}

TEST(LevelCodes, AreSentAboveTheCutAndLeaveTheRest) {
  const auto sizes = odd_sizes();
  for (const CodeForm form : {CodeForm::Bytes, CodeForm::TwoBits}) {
    LevelTable table(sizes);
    const at::Tensor u = randn(table.numel(), 5);
    const at::Tensor before = u.clone();
    const at::Tensor cuts = randn(table.tensors(), 6).abs();
    const at::Tensor levels = randn(table.tensors(), 7).abs().add(0.1);
    const at::Tensor sent =
        before.abs().gt(spread(cuts, sizes)).to(at::kInt) * before.sign().to(at::kInt);
    const at::Tensor buffer = at::full({code_bytes(table, form) + 8}, 255, at::kByte);
    const at::Tensor codes = buffer.narrow(0, 0, code_bytes(table, form));
    encode_above(u, table, cuts, form, codes);
    EXPECT_TRUE(u.equal(before));
    const at::Tensor again = at::empty_like(codes);
    encode_above(u, table, cuts, form, again, levels);
    EXPECT_TRUE(again.equal(codes));
    EXPECT_TRUE(buffer.narrow(0, codes.numel(), 8).eq(255).all().item<bool>());
    if (form == CodeForm::Bytes) {
      EXPECT_TRUE(codes.to(at::kInt).sub(1).equal(sent));
    } else {
      EXPECT_TRUE(at::tensor(unpacked(codes, table.numel())).to(at::kInt).equal(sent));
    }
    EXPECT_TRUE(u.equal(before - sent.to(at::kFloat) * spread(levels, sizes)));
  }
}

// Strictly above: what equals the cut is not sent.
TEST(LevelCodes, TheCutItselfIsNotSent) {
  LevelTable table({3});
  const at::Tensor codes = at::empty({1}, at::kByte);
  encode_above(
      at::tensor({0.5, -0.5, 0.5000001}, at::kFloat), table, at::full({1}, 0.5f), CodeForm::TwoBits,
      codes);
  EXPECT_EQ(codes[0].item<int>(), 0b00'00'11'00);
}

TEST(LevelCodes, AreSentByChanceWithoutABias) {
  // Every number 4,000 times.
  const std::vector<double> values = {0, 1e-3, 0.1, -0.25, 0.7, -1};
  constexpr std::int64_t kTimes = 4000;
  LevelTable table({static_cast<std::int64_t>(values.size()) * kTimes});
  const at::Tensor u = at::tensor(values, at::kFloat).repeat_interleave(kTimes);
  const at::Tensor codes = at::empty({kernels::packed_bytes(u.numel())}, at::kByte);
  const at::Tensor levels = at::ones({1});
  const auto encode = [&](const Chance& chance, const at::Tensor& to) {
    encode_by_chance(u, table, levels, chance, CodeForm::TwoBits, to);
  };
  encode({.seed = 9, .step = 4}, codes);
  const auto sent = unpacked(codes, u.numel());
  for (std::size_t v = 0; v < values.size(); ++v) {
    double sum = 0;
    for (std::int64_t i = 0; i < kTimes; ++i) {
      sum += sent[v * kTimes + static_cast<std::size_t>(i)];
    }
    const double p = std::abs(values[v]);
    const double deviation = std::sqrt(kTimes * p * (1 - p));
    EXPECT_NEAR(sum, kTimes * values[v], 4 * deviation) << values[v];
  }
  // Other steps and streams have other numbers, the same ones the same.
  for (const Chance& chance :
       {Chance{.seed = 9, .step = 5}, Chance{.seed = 8, .step = 4},
        Chance{.seed = 9, .step = 4, .stream = 1}, Chance{.seed = 9, .step = 4}}) {
    const at::Tensor other = at::empty_like(codes);
    encode(chance, other);
    const bool same = chance.seed == 9 && chance.step == 4 && chance.stream == 0;
    EXPECT_EQ(other.equal(codes), same);
  }
}

// Both ways to a mean, against float64.
TEST(LevelCodes, MeansAreThoseOfFloat64) {
  const auto sizes = odd_sizes();
  LevelTable table(sizes);
  for (const int n : {1, 2, 5, 127}) {
    const at::Tensor shared = randn(table.tensors(), 70).abs();
    const at::Tensor cuts = at::full({table.tensors()}, 0.4f);
    std::vector<at::Tensor> records;
    at::Tensor bytes = at::zeros({table.numel()}, at::kInt);
    at::Tensor own_sum = at::zeros({table.numel()}, at::kDouble);
    at::Tensor shared_sum = own_sum.clone();
    const std::int64_t head = 4 * table.tensors();
    for (int w = 0; w < n; ++w) {
      const at::Tensor u = randn(table.numel(), 50 + w);
      const at::Tensor own = randn(table.tensors(), 500 + w).abs();
      const at::Tensor sign = u.sign() * u.abs().gt(0.4f);
      own_sum.add_((sign * spread(own, sizes)).to(at::kDouble));
      shared_sum.add_((sign * spread(shared, sizes)).to(at::kDouble));
      const at::Tensor record = at::empty({table.record_bytes()}, at::kByte);
      record.narrow(0, 0, head).copy_(own.view(at::kByte));
      encode_above(
          u, table, cuts, CodeForm::TwoBits, record.narrow(0, head, record.numel() - head));
      records.push_back(record);
      const at::Tensor codes = at::empty({table.numel()}, at::kByte);
      encode_above(u, table, cuts, CodeForm::Bytes, codes);
      bytes.add_(codes);
    }
    const at::Tensor estimate = at::empty({table.numel()});
    average_levels(at::cat(records), n, table, estimate);
    EXPECT_LT(estimate.to(at::kDouble).sub(own_sum.div(n)).abs().max().item<double>(), 1e-6) << n;
    average_byte_levels(bytes.to(at::kByte), n, table, shared, estimate);
    EXPECT_LT(estimate.to(at::kDouble).sub(shared_sum.div(n)).abs().max().item<double>(), 1e-6)
        << n;
  }
}

TEST(LevelCodes, WhatIsNotFiniteShowsInItsTensor) {
  const std::vector<std::int64_t> sizes = {5, 7};
  for (const float bad : {std::nanf(""), kInfinity, -kInfinity}) {
    LevelTable table(sizes);
    const at::Tensor u = randn(12, 3);
    u[6].fill_(bad);
    const at::Tensor most = at::empty({2});
    magnitudes(u, table.blocks(), Statistic::Largest, most);
    const at::Tensor record = at::empty({table.record_bytes()}, at::kByte);
    record.narrow(0, 0, 8).view(at::kFloat).copy_(most);
    encode_by_chance(u, table, most, {}, CodeForm::TwoBits, record.narrow(0, 8, 3));
    const at::Tensor estimate = at::empty({12});
    average_levels(record, 1, table, estimate);
    EXPECT_TRUE(estimate.narrow(0, 0, 5).isfinite().all().item<bool>());
    EXPECT_FALSE(estimate.narrow(0, 5, 7).isfinite().any().item<bool>());
  }
}

TEST(LevelCodes, ZerosStayZeros) {
  LevelTable table({9});
  const at::Tensor u = at::zeros({9});
  const at::Tensor most = at::zeros({1});
  const at::Tensor record = at::full({table.record_bytes()}, 255, at::kByte);
  record.narrow(0, 0, 4).view(at::kFloat).copy_(most);
  encode_by_chance(u, table, most, {}, CodeForm::TwoBits, record.narrow(0, 4, 3));
  EXPECT_FALSE(record.any().item<bool>());
}

TEST(LevelCodesErrors, RefuseWhatDoesNotFit) {
  EXPECT_THROW(LevelTable({3, 0}), std::logic_error);
  LevelTable table({8});
  const at::Tensor u = at::zeros({8});
  const at::Tensor levels = at::zeros({1});
  const at::Tensor one = at::empty({1}, at::kByte);
  const at::Tensor seven = at::empty({7}, at::kByte);
  EXPECT_THROW(encode_by_chance(u, table, levels, {}, CodeForm::TwoBits, one), std::logic_error);
  EXPECT_THROW(encode_above(u, table, levels, CodeForm::Bytes, seven), std::logic_error);
  EXPECT_THROW(
      encode_above(u, table, levels, CodeForm::Bytes, at::empty({8}, at::kByte), at::empty({0})),
      std::logic_error);
  EXPECT_THROW(
      average_byte_levels(at::zeros({8}, at::kByte), 128, table, levels, u), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
