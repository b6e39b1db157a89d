#include "ops/twobit_codes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tensors.h"

namespace abtrain::ops {
namespace {

at::Tensor twobit_buffer(const CodeBlocks& blocks, CodeForm form) {
  return at::empty({code_bytes(blocks, blocks.all(), form)}, at::kByte);
}

// MXNet's published example, t = 4.
TEST(TwoBitCodes, AreMxnets) {
  CodeBlocks blocks({{0, 10}});
  const at::Tensor u = at::tensor({-9., -1., 2., 6., 8., 7., 0., -5., -10., -100.}, at::kFloat);
  const at::Tensor wire = twobit_buffer(blocks, CodeForm::TwoBits);
  ASSERT_EQ(wire.numel(), 8);
  encode_threshold(u, blocks, at::full({1}, 4.0f), wire, CodeForm::TwoBits);
  EXPECT_TRUE(wire.equal(at::tensor({0x83, 0xF2, 0xA0, 0, 0, 0, 0, 0}, at::kByte)));
  EXPECT_TRUE(u.equal(at::tensor({-5., -1., 2., 2., 4., 3., 0., -1., -6., -96.}, at::kFloat)));
}

TEST(TwoBitCodes, SumsHaveTheBitsThatTheyNeed) {
  for (const int n : {1, 2, 3, 4, 7, 8, 16, 100, 128, 1000}) {
    EXPECT_EQ(sum_bits(n), std::ceil(std::log2(2.0 * n + 1))) << n;
  }
}

// All ways from codes to a mean, against float64.
TEST(TwoBitCodes, MeansAreThoseOfFloat64) {
  CodeBlocks blocks({{0, 4099}, {4099, 40}});
  const at::Tensor thresholds = at::tensor({0.5, 1.5}, at::kFloat);
  const at::Tensor t = at::cat({at::full({4099}, 0.5), at::full({40}, 1.5)}).to(at::kFloat);
  for (const int n : {1, 2, 5, 127}) {
    std::vector<at::Tensor> codes;
    at::Tensor bytes = at::zeros({code_bytes(blocks, blocks.all(), CodeForm::Bytes)}, at::kInt);
    at::Tensor sum = at::zeros({4139}, at::kDouble);
    for (int w = 0; w < n; ++w) {
      const at::Tensor x = randn(4139, 50 + w);
      const at::Tensor sent = x.ge(t).to(at::kFloat).sub(x.le(t.neg()).to(at::kFloat)).mul(t);
      sum.add_(sent.to(at::kDouble));
      at::Tensor u = x.clone();
      codes.push_back(twobit_buffer(blocks, CodeForm::TwoBits));
      encode_threshold(u, blocks, thresholds, codes.back(), CodeForm::TwoBits);
      EXPECT_TRUE(u.equal(x.sub(sent)));
      u = x.clone();
      const at::Tensor byte = twobit_buffer(blocks, CodeForm::Bytes);
      encode_threshold(u, blocks, thresholds, byte, CodeForm::Bytes);
      EXPECT_TRUE(u.equal(x.sub(sent)));
      bytes.add_(byte);
    }
    const at::Tensor wanted = sum.div(static_cast<double>(n)).to(at::kFloat);
    const at::Tensor in = at::cat(codes);
    const at::Tensor mean = at::empty({4139});
    average_codes(in, CodeWire::Codes, n, blocks, thresholds, mean);
    EXPECT_TRUE(mean.allclose(wanted, 1e-6, 0)) << n;

    // The two blocks of the first tensor and that of the second one apart.
    const CodeBlocks::Range first{0, 1}, rest{1, 3};
    std::vector<at::Tensor> words;
    for (const auto& part : {first, rest}) {
      std::vector<at::Tensor> shards;
      for (const at::Tensor& each : codes) {
        shards.push_back(each.narrow(
            0, 8 * blocks.groups_before(part.begin), code_bytes(blocks, part, CodeForm::TwoBits)));
      }
      words.push_back(at::empty({sum_words(blocks, part, n)}, at::kInt));
      pack_sums(at::cat(shards), n, blocks, part, words.back());
    }
    const at::Tensor by_sums = at::empty({4139});
    average_codes(at::cat(words), CodeWire::Planes, n, blocks, thresholds, by_sums);
    EXPECT_TRUE(by_sums.equal(mean)) << n;

    const at::Tensor by_bytes = at::empty({4139});
    average_codes(bytes.to(at::kByte), CodeWire::Bytes, n, blocks, thresholds, by_bytes);
    EXPECT_TRUE(by_bytes.equal(mean)) << n;
  }
}

TEST(TwoBitCodes, ShowWhatIsNotFinite) {
  CodeBlocks blocks({{0, 100}});
  const at::Tensor t = at::full({1}, 0.5f);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const at::Tensor u = at::full({100}, 1.0f);
    u[70].fill_(bad);
    const at::Tensor good = at::full({100}, 1.0f);
    const at::Tensor codes = twobit_buffer(blocks, CodeForm::TwoBits);
    const at::Tensor others = twobit_buffer(blocks, CodeForm::TwoBits);
    encode_threshold(u, blocks, t, codes, CodeForm::TwoBits);
    encode_threshold(good, blocks, t, others, CodeForm::TwoBits);
    for (const auto& all : {at::cat({codes, others}), at::cat({others, codes})}) {
      const at::Tensor mean = at::zeros({100});
      average_codes(all, CodeWire::Codes, 2, blocks, t, mean);
      EXPECT_TRUE(mean[70].isnan().item<bool>());
      EXPECT_EQ(mean.isnan().sum().item<int>(), 1);
      EXPECT_EQ(mean[71].item<float>(), 0.5f);
      const at::Tensor words = at::empty({sum_words(blocks, blocks.all(), 2)}, at::kInt);
      pack_sums(all, 2, blocks, blocks.all(), words);
      const at::Tensor same = at::zeros({100});
      average_codes(words, CodeWire::Planes, 2, blocks, t, same);
      EXPECT_TRUE(same.allclose(mean, 0, 0, /*equal_nan=*/true));
    }
  }
  // With bytes the threshold shows it.
  const at::Tensor bytes = twobit_buffer(blocks, CodeForm::Bytes);
  const at::Tensor u = at::zeros({100});
  const at::Tensor nan = at::full({1}, NAN);
  encode_threshold(u, blocks, nan, bytes, CodeForm::Bytes);
  const at::Tensor mean = at::zeros({100});
  average_codes(bytes, CodeWire::Bytes, 1, blocks, nan, mean);
  EXPECT_TRUE(mean.isnan().all().item<bool>());
}

TEST(TwoBitCodes, RefuseWhatDoesNotFit) {
  CodeBlocks blocks({{0, 100}});
  const at::Tensor t = at::full({1}, 0.5f);
  EXPECT_THROW(
      encode_threshold(at::zeros({100}), blocks, t, at::zeros({31}, at::kByte), CodeForm::TwoBits),
      std::logic_error);
  EXPECT_THROW(
      average_codes(
          twobit_buffer(blocks, CodeForm::Bytes), CodeWire::Bytes, 128, blocks, t,
          at::zeros({100})),
      std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
