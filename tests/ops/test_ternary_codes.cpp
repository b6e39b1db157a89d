#include "ops/ternary_codes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/magnitudes.h"
#include "tensors.h"

namespace abtrain::ops {
namespace {

// Tensors that begin anywhere, several in one packed byte, one over many blocks.
const std::vector<std::int64_t> kSizes = {1, 2, 5, 4099, 1, 9001, 30};

TernaryTable table_of(const std::vector<std::int64_t>& sizes, bool packed) {
  std::vector<CodeBlocks::Tensor> tensors;
  for (const std::int64_t numel : sizes) {
    tensors.push_back({tensors.empty() ? 0 : tensors.back().begin + tensors.back().numel, numel});
  }
  return TernaryTable(CodeBlocks(tensors), packed);
}

// One number of `each` per tensor of kSizes, repeated for its elements.
at::Tensor spread(const at::Tensor& each) {
  return each.repeat_interleave(at::tensor(kSizes, at::kLong));
}

// With bytes past their end that must stay as they are.
at::Tensor encoded(
    const at::Tensor& u, TernaryTable& table, const at::Tensor& levels, const TernaryRule& rule,
    CodeForm form) {
  const std::int64_t bytes = code_bytes(table.on(at::kCPU).codes, form);
  const at::Tensor buffer = at::full({bytes + 8}, 255, at::kByte);
  encode_ternary(u, table, levels, rule, form, buffer);
  EXPECT_TRUE(buffer.narrow(0, bytes, 8).eq(255).all().item<bool>());
  return buffer.narrow(0, 0, bytes);
}

at::Tensor record_of(const at::Tensor& levels, const at::Tensor& codes) {
  return at::cat({levels.view(at::kByte), codes});
}

at::Tensor mean_of_records(const std::vector<at::Tensor>& records, TernaryTable& table) {
  const at::Tensor mean = at::empty({table.blocks().end()});
  average_records(at::cat(records), static_cast<int>(records.size()), table, mean);
  return mean;
}

at::Tensor mean_of(
    const at::Tensor& in, CodeWire wire, int workers, TernaryTable& table,
    const at::Tensor& levels) {
  const at::Tensor mean = at::empty({table.blocks().end()});
  average_codes(in, wire, workers, table, levels, mean);
  return mean;
}

// MXNet's published example, t = 4.
TEST(TernaryCodes, AreMxnets) {
  TernaryTable table = table_of({10}, /*packed=*/false);
  const at::Tensor u = at::tensor({-9., -1., 2., 6., 8., 7., 0., -5., -10., -100.}, at::kFloat);
  const at::Tensor t = at::full({1}, 4.0f);
  const TernaryRule rule{.cuts = cuts_at(t), .keeps_rest = true};
  const at::Tensor wire = encoded(u, table, t, rule, CodeForm::TwoBits);
  EXPECT_TRUE(wire.equal(at::tensor({0x83, 0xF2, 0xA0, 0, 0, 0, 0, 0}, at::kByte)));
  EXPECT_TRUE(u.equal(at::tensor({-5., -1., 2., 2., 4., 3., 0., -1., -6., -96.}, at::kFloat)));
}

// The specification's example of the threshold quantizer, c = 0.7.
TEST(TernaryCodes, AreThoseOfTheWorkedExample) {
  TernaryTable table = table_of({4}, /*packed=*/true);
  const at::Tensor u = at::tensor({.1, -.2, .9, -1.2}, at::kFloat);
  const at::Tensor cuts = at::full({1}, .7f * .6f);
  const at::Tensor sums = at::empty({2});
  magnitudes(u, table.blocks(), Statistic::Above, sums, cuts);
  EXPECT_FLOAT_EQ(sums[0].item<float>(), 2.1f);
  EXPECT_EQ(sums[1].item<float>(), 2);
  const at::Tensor level = at::full({1}, 1.05f);
  const at::Tensor codes =
      encoded(u, table, level, {.cuts = cuts, .keeps_rest = true}, CodeForm::TwoBits);
  ASSERT_EQ(codes.numel(), 1);
  EXPECT_EQ(codes[0].item<int>(), 0b00'00'11'10);
  EXPECT_TRUE(mean_of_records({record_of(level, codes)}, table)
                  .equal(at::tensor({0., 0., 1.05, -1.05}, at::kFloat)));
  EXPECT_TRUE(u.allclose(at::tensor({.1, -.2, -.15, -.15}, at::kFloat)));
}

TEST(TernaryCodes, TheCutItselfIsNotSentAndAThresholdIs) {
  TernaryTable table = table_of({4}, /*packed=*/true);
  const at::Tensor u = at::tensor({0.5, -0.5, 0.5000001, 0.49999997}, at::kFloat);
  const at::Tensor half = at::full({1}, 0.5f);
  const auto codes_for = [&](const at::Tensor& cuts) {
    return encoded(u, table, half, {.cuts = cuts}, CodeForm::TwoBits)[0].item<int>();
  };
  EXPECT_EQ(codes_for(half), 0b00'00'11'00);
  EXPECT_EQ(codes_for(cuts_at(half)), 0b11'10'11'00);
}

TEST(TernaryCodes, SumsHaveTheBitsThatTheyNeed) {
  for (const int n : {1, 2, 3, 4, 7, 8, 16, 100, 128, 1000}) {
    EXPECT_EQ(sum_bits(n), std::ceil(std::log2(2.0 * n + 1))) << n;
  }
}

// All ways from codes to a mean: of own levels against float64, of shared ones to the bit; and what
// is left.
TEST(TernaryCodes, HaveTheMeansOfWhatTheyStandFor) {
  for (const bool packed : {false, true}) {
    TernaryTable table = table_of(kSizes, packed);
    CodeBlocks& blocks = table.blocks();
    const std::int64_t tensors = blocks.tensors();
    const at::Tensor cuts = randn(tensors, 6).abs();
    const at::Tensor shared = randn(tensors, 70).abs();
    for (const int n : {1, 2, 5, 127}) {
      SCOPED_TRACE(n);
      std::vector<at::Tensor> records, codes;
      at::Tensor bytes, own_sum, signs;
      const auto add = [](at::Tensor& sum, const at::Tensor& more, at::ScalarType type) {
        sum = sum.defined() ? sum.add(more) : more.to(type);
      };
      for (int w = 0; w < n; ++w) {
        const at::Tensor before = randn(blocks.end(), 50 + w);
        const at::Tensor own = randn(tensors, 500 + w).abs();
        const at::Tensor sign = before.sign() * before.abs().gt(spread(cuts));
        add(own_sum, sign * spread(own), at::kDouble);
        add(signs, sign, at::kFloat);
        const at::Tensor u = before.clone();
        codes.push_back(encoded(u, table, own, {.cuts = cuts}, CodeForm::TwoBits));
        EXPECT_TRUE(u.equal(before));
        records.push_back(record_of(own, codes.back()));
        const TernaryRule rule{.cuts = cuts, .keeps_rest = true};
        add(bytes, encoded(u, table, own, rule, CodeForm::Bytes), at::kInt);
        EXPECT_TRUE(u.equal(before - sign * spread(own)));
      }
      const at::Tensor of_records = mean_of_records(records, table).to(at::kDouble);
      EXPECT_LT(of_records.sub(own_sum.div(n)).abs().max().item<double>(), 1e-6);
      const at::Tensor mean = mean_of(at::cat(codes), CodeWire::Codes, n, table, shared);
      EXPECT_TRUE(
          mean.equal(packed ? signs.mul(spread(shared)).div(n) : signs.mul(spread(shared.div(n)))));
      EXPECT_TRUE(mean_of(bytes.to(at::kByte), CodeWire::Bytes, n, table, shared).equal(mean));
      if (packed) {
        continue;
      }
      // Two shares of the blocks, the second one with parts of two tensors.
      std::vector<at::Tensor> words;
      for (const auto& part : {blocks.share(2, 0), blocks.share(2, 1)}) {
        std::vector<at::Tensor> shards;
        for (const at::Tensor& each : codes) {
          shards.push_back(each.narrow(
              0, 8 * blocks.groups_before(part.begin),
              code_bytes(blocks, part, CodeForm::TwoBits)));
        }
        words.push_back(at::empty({sum_words(blocks, part, n)}, at::kInt));
        pack_sums(at::cat(shards), n, blocks, part, words.back());
      }
      EXPECT_TRUE(mean_of(at::cat(words), CodeWire::Planes, n, table, shared).equal(mean));
    }
  }
}

TEST(TernaryCodes, AreSentByChanceWithoutABias) {
  // Every number 4,000 times.
  const std::vector<double> values = {0, 1e-3, 0.1, -0.25, 0.7, -1};
  constexpr std::int64_t kTimes = 4000;
  TernaryTable table = table_of({std::ssize(values) * kTimes}, /*packed=*/true);
  const at::Tensor u = at::tensor(values, at::kFloat).repeat_interleave(kTimes);
  const auto sent = [&](std::uint64_t seed, std::uint32_t step, std::uint32_t stream) {
    const TernaryRule rule{
        .random = kernels::random_stream(seed, kernels::RandomPurpose::Rounding, step, stream)};
    return encoded(u, table, at::ones({1}), rule, CodeForm::Bytes).to(at::kInt) - 1;
  };
  const at::Tensor codes = sent(9, 4, 0);
  const at::Tensor sums = codes.view({-1, kTimes}).sum(1);
  for (std::int64_t v = 0; v < std::ssize(values); ++v) {
    const double value = values[static_cast<std::size_t>(v)];
    const double p = std::abs(value);
    EXPECT_NEAR(sums[v].item<double>(), kTimes * value, 4 * std::sqrt(kTimes * p * (1 - p)));
  }
  // Other seeds, steps and streams have other numbers, the same ones the same.
  EXPECT_TRUE(sent(9, 4, 0).equal(codes));
  EXPECT_FALSE(sent(8, 4, 0).equal(codes));
  EXPECT_FALSE(sent(9, 5, 0).equal(codes));
  EXPECT_FALSE(sent(9, 4, 1).equal(codes));
}

TEST(TernaryCodes, ShowWhatIsNotFinite) {
  TernaryTable table = table_of({50, 70}, /*packed=*/false);
  CodeBlocks& blocks = table.blocks();
  const at::Tensor t = at::full({2}, 0.5f);
  const at::Tensor good = at::full({120}, 1.0f);
  for (const float bad : {std::nanf(""), kInfinity, -kInfinity}) {
    const at::Tensor u = good.clone();
    u[60].fill_(bad);
    const auto codes_of = [&](const at::Tensor& x) {
      return encoded(x, table, t, {.cuts = cuts_at(t)}, CodeForm::TwoBits);
    };
    for (const auto& all :
         {at::cat({codes_of(u), codes_of(good)}), at::cat({codes_of(good), codes_of(u)})}) {
      const at::Tensor mean = mean_of(all, CodeWire::Codes, 2, table, t);
      EXPECT_TRUE(mean[60].isnan().item<bool>());
      EXPECT_EQ(mean.eq(0.5f).sum().item<int>(), 119);
      const at::Tensor words = at::empty({sum_words(blocks, blocks.all(), 2)}, at::kInt);
      pack_sums(all, 2, blocks, blocks.all(), words);
      EXPECT_TRUE(
          mean_of(words, CodeWire::Planes, 2, table, t).allclose(mean, 0, 0, /*equal_nan=*/true));
    }
  }
}

// By levels that follow from the elements.
TEST(TernaryCodes, ShowInTheirTensorWhatIsNotFinite) {
  for (const bool packed : {false, true}) {
    TernaryTable table = table_of({50, 70}, packed);
    for (const float bad : {std::nanf(""), kInfinity, -kInfinity}) {
      const at::Tensor u = randn(120, 3);
      u[60].fill_(bad);
      const at::Tensor most = at::empty({2});
      magnitudes(u, table.blocks(), Statistic::Largest, most);
      const TernaryRule rule{.cuts = packed ? at::Tensor() : most};
      const at::Tensor bytes = encoded(u, table, most, rule, CodeForm::Bytes);
      const at::Tensor codes = encoded(u, table, most, rule, CodeForm::TwoBits);
      for (const at::Tensor& mean :
           {mean_of(bytes, CodeWire::Bytes, 1, table, most),
            mean_of_records({record_of(most, codes)}, table)}) {
        EXPECT_TRUE(mean.narrow(0, 0, 50).isfinite().all().item<bool>());
        EXPECT_FALSE(mean.narrow(0, 50, 70).isfinite().any().item<bool>());
      }
    }
  }
}

TEST(TernaryCodes, RefuseWhatDoesNotFit) {
  EXPECT_THROW(TernaryTable(CodeBlocks({{0, 3}, {4, 5}}), /*packed=*/true), std::logic_error);
  const at::Tensor u = at::zeros({100});
  const at::Tensor one = at::zeros({1});
  for (const bool packed : {false, true}) {
    TernaryTable table = table_of({100}, packed);
    const auto encode = [&](const TernaryRule& rule, CodeForm form, std::int64_t less) {
      const std::int64_t bytes = code_bytes(packed ? 100 : 128, form) - less;
      encode_ternary(u, table, one, rule, form, at::empty({bytes}, at::kByte));
    };
    for (const CodeForm form : {CodeForm::TwoBits, CodeForm::Bytes}) {
      EXPECT_NO_THROW(encode({.cuts = one}, form, 0));
      EXPECT_THROW(encode({.cuts = one}, form, 1), std::logic_error);
      EXPECT_THROW(encode({.cuts = at::empty({0})}, form, 0), std::logic_error);
    }
    if (!packed) {
      EXPECT_THROW(encode({}, CodeForm::TwoBits, 0), std::logic_error);
    }
    EXPECT_THROW(
        mean_of(at::zeros({128}, at::kByte), CodeWire::Bytes, 128, table, one), std::logic_error);
  }
}

}  // namespace
}  // namespace abtrain::ops
