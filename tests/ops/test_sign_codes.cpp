#include "ops/sign_codes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tensors.h"

namespace abtrain::ops {
namespace {

at::Tensor record_buffer(const CodeBlocks& blocks, bool fresh) {
  return at::empty({sign_words(blocks, blocks.all(), fresh)}, at::kInt);
}

// Two tensors: of one full block and a part, and of less than a word.
CodeBlocks two_tensors() {
  return CodeBlocks({{0, 5001}, {5001, 7}});
}

TEST(CodeBlocks, DoNotCrossTensors) {
  const CodeBlocks blocks = two_tensors();
  ASSERT_EQ(blocks.size(), 3);
  EXPECT_EQ(blocks.tensors(), 2);
  EXPECT_EQ(blocks.host()[1].begin, 4096);
  EXPECT_EQ(blocks.host()[1].count, 905);
  EXPECT_EQ(blocks.host()[1].group, 128);
  EXPECT_EQ(blocks.host()[2].begin, 5001);
  EXPECT_EQ(blocks.host()[2].group, 128 + 29);
  EXPECT_EQ(blocks.host()[2].slot, 1);
  EXPECT_EQ(blocks.groups(), 158);
  EXPECT_EQ(blocks.firsts(), (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(blocks.span({1, 3}), 912);
  EXPECT_EQ(blocks.span({3, 3}), 0);
  EXPECT_THROW(CodeBlocks({{0, 8}, {4, 8}}), std::logic_error);
  EXPECT_EQ(CodeBlocks().tensors(), 0);
}

TEST(CodeBlocks, SharesCoverAll) {
  const CodeBlocks blocks({{0, 40001}});
  for (const int n : {1, 2, 3, 16}) {
    std::int64_t next = 0;
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(blocks.share(n, i).begin, next);
      next = blocks.share(n, i).end;
    }
    EXPECT_EQ(next, blocks.size());
  }
}

// x of a block is s sign(x), s its root mean square.
TEST(SignCodes, SayScaleAndSign) {
  CodeBlocks blocks = two_tensors();
  const at::Tensor x = randn(blocks.end(), 1);
  for (const bool fresh : {false, true}) {
    const at::Tensor u = x.clone();
    const at::Tensor wire = record_buffer(blocks, fresh);
    // What a fresh record says of this is not used.
    const at::Tensor alive = at::full({blocks.groups()}, fresh ? 0 : -1, at::kInt);
    encode_signs(u, blocks, alive, wire, fresh);
    const at::Tensor estimate = at::empty({blocks.end()});
    decode_signs(wire, blocks, alive, estimate, fresh);
    std::vector<at::Tensor> wanted;
    for (std::int64_t b = 0; b < blocks.size(); ++b) {
      const at::Tensor part =
          x.narrow(0, blocks.host()[b].begin, blocks.host()[b].count).to(at::kDouble);
      // Not fresh: all numbers of whole words count, 0 where there are none.
      const auto count = fresh ? part.numel() : (part.numel() + 31) / 32 * 32;
      wanted.push_back(part.sign().mul(std::sqrt(part.square().sum().item<double>() / count)));
    }
    const at::Tensor sent = at::cat(wanted).to(at::kFloat);
    EXPECT_TRUE(estimate.allclose(sent, 1e-6, 0));
    EXPECT_TRUE(u.equal(x.sub(estimate)));
  }
}

TEST(SignCodes, SendNothingOfWhatIsDead) {
  CodeBlocks blocks({{0, 70}});
  const at::Tensor x = randn(70, 2);
  x.narrow(0, 10, 40).zero_();
  x[11].fill_(-0.0f);
  const at::Tensor alive = at::zeros({blocks.groups()}, at::kInt);
  const at::Tensor u = x.clone();
  const at::Tensor wire = record_buffer(blocks, true);
  encode_signs(u, blocks, alive, wire, true);
  const at::Tensor estimate = at::full({70}, 9.0f);
  decode_signs(wire, blocks, alive, estimate, true);
  EXPECT_TRUE(estimate.narrow(0, 10, 40).eq(0).all().item<bool>());
  const auto scale = std::sqrt(x.to(at::kDouble).square().sum().item<double>() / 30);
  EXPECT_NEAR(std::abs(estimate[0].item<float>()), scale, 1e-6);

  // What wakes up waits for the next mask.
  const at::Tensor later = at::full({70}, 2.0f);
  const at::Tensor next = record_buffer(blocks, false);
  encode_signs(later, blocks, alive, next, false);
  decode_signs(next, blocks, alive, estimate, false);
  EXPECT_TRUE(estimate.narrow(0, 10, 40).eq(0).all().item<bool>());
  EXPECT_TRUE(later.narrow(0, 10, 40).eq(2).all().item<bool>());
  EXPECT_GT(estimate[0].item<float>(), 1);
}

TEST(SignCodes, AServerAveragesAndKeepsTheRest) {
  CodeBlocks blocks = two_tensors();
  const CodeBlocks::Range part{1, 3};
  const std::int64_t from = blocks.host()[1].begin;
  const int n = 3;
  for (const bool fresh : {false, true}) {
    std::vector<at::Tensor> records;
    at::Tensor sum = at::zeros({blocks.end()}, at::kDouble);
    const at::Tensor alive = at::full({blocks.groups()}, -1, at::kInt);
    for (int w = 0; w < n; ++w) {
      const at::Tensor u = randn(blocks.end(), 10 + w);
      // Dead to one worker, to all workers, to all but for the residual.
      u[from + 3].fill_(w == 0 ? 0 : u[from + 3].item<float>());
      u.narrow(0, from + 4, 2).zero_();
      const at::Tensor before = u.clone();
      const at::Tensor wire = record_buffer(blocks, fresh);
      encode_signs(u, blocks, alive, wire, fresh);
      records.push_back(
          wire.narrow(0, sign_words(blocks, {0, 1}, fresh), sign_words(blocks, part, fresh)));
      sum.add_(before.sub(u).to(at::kDouble));
    }
    const at::Tensor residual = randn(blocks.span(part), 5);
    residual[4].fill_(0);
    const at::Tensor x =
        sum.narrow(0, from, blocks.span(part)).div(3.0).add(residual.to(at::kDouble));
    const at::Tensor answer = at::empty({sign_words(blocks, part, fresh)}, at::kInt);
    serve_signs(at::cat(records), n, blocks, part, alive, residual, answer, fresh);

    const at::Tensor wire = at::zeros_like(record_buffer(blocks, fresh));
    wire.narrow(0, sign_words(blocks, {0, 1}, fresh), answer.numel()).copy_(answer);
    const at::Tensor estimate = at::empty({blocks.end()});
    decode_signs(wire, blocks, alive, estimate, fresh);
    const at::Tensor mine = estimate.narrow(0, from, blocks.span(part)).to(at::kDouble);
    if (fresh) {
      EXPECT_EQ(mine[4].item<double>(), 0);
      EXPECT_NE(mine[5].item<double>(), 0);
      EXPECT_NE(mine[3].item<double>(), 0);
    }
    // Signs of the mean, but of what rounding leaves of 0.
    EXPECT_TRUE(mine.mul(x).ge(-1e-6).all().item<bool>());
    const auto scale =
        std::sqrt(x.narrow(0, 905, 7).square().sum().item<double>() / (fresh ? 7 : 32));
    EXPECT_NEAR(std::abs(mine[905].item<double>()), scale, 1e-6);
    EXPECT_TRUE(residual.to(at::kDouble).add(mine).allclose(x, 1e-6, 1e-6));
  }
}

TEST(SignCodes, ShowWhatIsNotFinite) {
  CodeBlocks blocks({{0, 100}});
  for (const bool fresh : {false, true}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      // Dead where the record is not fresh.
      const at::Tensor alive = at::zeros({blocks.groups()}, at::kInt);
      const at::Tensor u = randn(100, 1);
      u[50].fill_(bad);
      const at::Tensor wire = record_buffer(blocks, fresh);
      encode_signs(u, blocks, alive, wire, fresh);
      const at::Tensor residual = at::zeros({100});
      const at::Tensor answer = wire.clone();
      serve_signs(wire, 1, blocks, blocks.all(), alive, residual, answer, fresh);
      const at::Tensor estimate = at::zeros({100});
      decode_signs(answer, blocks, alive, estimate, fresh);
      EXPECT_FALSE(estimate.isfinite().any().item<bool>()) << bad << fresh;
    }
  }
}

TEST(SignCodes, RefuseWhatDoesNotFit) {
  CodeBlocks blocks({{0, 100}});
  const at::Tensor alive = at::zeros({blocks.groups()}, at::kInt);
  const at::Tensor wire = record_buffer(blocks, false);
  EXPECT_THROW(encode_signs(at::zeros({99}), blocks, alive, wire, false), std::logic_error);
  EXPECT_THROW(encode_signs(at::zeros({100}), blocks, alive, wire, true), std::logic_error);
  EXPECT_THROW(
      decode_signs(wire, blocks, alive, at::zeros({100}, at::kDouble), false), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
