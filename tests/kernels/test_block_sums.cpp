// Sums over blocks of numbers and over workers' codes, and the scale that all workers then agree
// on.
#include <ATen/ops/stack.h>

#include "base/random.h"
#include "ops/cpu/random_words.h"
#include "quantize_cases.h"

namespace abtrain::ops {
namespace {

TEST(RandomWords, AreThoseOfTheStream) {
  for (const auto& [simd, first, blocks] :
       cases({Simd::Plain, best_simd()}, {0LL, 5LL, 0xFFFFFFFCLL}, {0, 1, 7, 8, 9, 40})) {
    std::vector<std::uint32_t> words(static_cast<std::size_t>(4 * blocks)), wanted;
    const auto stream = kernels::random_stream(77, RandomPurpose::Rounding, 5, 6);
    simd_in_use = simd;
    random_words(stream, first, blocks, words.data());
    for (std::int64_t i = 0; i < blocks; ++i) {
      const auto place = static_cast<std::uint64_t>(first + i);
      std::uint32_t block[] = {
          static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32), 5, 6};
      kernels::philox(stream.key, block);
      wanted.insert(wanted.end(), std::begin(block), std::end(block));
    }
    EXPECT_EQ(words, wanted);
  }
  simd_in_use = best_simd();
}

ABT_OP_TEST(BlockNorms, EqualFloat64) {
  for (const int log : {1, 2, 3, 4, 6, 7, 10, 12, 13, 21}) {  // up to more tiles than lanes
    const std::int64_t block = std::int64_t{1} << log;
    const std::int64_t most = kEmulated && log < 21 ? 9001 : 1'200'001;
    for (const auto& [numel, offset] : cases({1L, 1023L, 1025L, 3001L, most}, {0, 1})) {
      if (log == 21 && numel != 1023 && numel != most) {
        continue;
      }
      const at::Tensor u = randn(numel, 3);
      u[numel / 2] = numel == 1023 ? NAN : 3.0F;
      const at::Tensor norms = norms_of(forms, u, block, offset).to(at::kDouble);
      const at::Tensor squares = in_rows(u.to(at::kDouble), block, 128).square().sum(1);
      EXPECT_TRUE(norms.allclose(squares.sqrt().nan_to_num(kInfinity), 1e-6, 0)) << block;
    }
  }
}

ABT_OP_TEST(BlockNorms, AreInfiniteWhereANumberIsNotFinite) {
  for (const float bad : kNotFinite) {
    const at::Tensor u = randn(3000, 3);
    u[1500] = bad;
    const at::Tensor norms = norms_of(forms, u, 1024);
    EXPECT_TRUE(std::isfinite(number(norms[0])));
    EXPECT_EQ(number(norms[1]), kInfinity);
  }
}

ABT_OP_TEST(SumCodes, ClampTheSumOnceAndCountIt) {
  for (const auto& [n, size] :
       cases({1, 2, 3, 7, 8, 40, 4096}, {0L, 64L, 1344L, 8256L, forms.large(70016, 64)})) {
    if (n > 100 && size > 64) {
      continue;
    }
    // Of many members most sums are beyond, so that both ends are met.
    const at::Tensor in = random_bytes(n * size, 9);
    if (size > 0) {
      in.view({n, size}).narrow(1, 0, 5).fill_(0x11);
      in.view({n, size}).narrow(1, 5, 5).fill_(0xFF);
      in.view({n, size}).narrow(1, 10, 5).fill_(0x88);
    }
    const at::Tensor out = forms.same([&](const Form& form) {
      const at::Tensor sums = form.blank({size + kernels::kTailBytes}, at::kByte);
      sum_codes(form.of(in), n, sums);
      return sums;
    });
    const std::vector<at::Tensor> halves = {in.bitwise_and(15), in.bitwise_right_shift(4)};
    const at::Tensor sums = at::stack(halves, 1).view({n, size, 2}).to(at::kInt).sub(8).sum(0);
    const at::Tensor within = sums.clamp(-7, 7);
    const at::Tensor codes = within.select(1, 0) + 8 + (within.select(1, 1) + 8) * 16;
    EXPECT_TRUE(out.narrow(0, 0, size).equal(codes.to(at::kByte)));
    const at::Tensor clamped = within.ne(sums).sum();
    EXPECT_TRUE(size == 0 || clamped.item<int>() > 0);
    EXPECT_TRUE(out.slice(0, size).view(at::kInt).equal(
        at::tensor({clamped.item<int>(), 0, 0, 0}, at::kInt)));
  }
}

// Shards with tails behind them, as an all-gather makes them.
at::Tensor shards_of(
    const at::Tensor& codes, std::int64_t unit_bytes, const std::vector<int>& counts) {
  const std::int64_t units = codes.numel() / unit_bytes, n = std::ssize(counts);
  std::vector<at::Tensor> all;
  for (std::int64_t i = 0; i < n; ++i) {
    all.push_back(codes.slice(0, units * i / n * unit_bytes, units * (i + 1) / n * unit_bytes));
    const int count = counts[static_cast<std::size_t>(i)];
    all.push_back(at::tensor({count, 0, 0, 0}, at::kInt).view(at::kByte));
  }
  return at::cat(all);
}

ABT_OP_TEST(Dequantize, FindsCodesInShards) {
  for (const auto& [block, n] : cases({32L, 128L, 1024L, 2048L}, {2, 3, 8})) {
    const Coding coding = coding_of(block, true, Lanes::Nibble);
    const Quantized whole = quantized(forms, randn(9000, 3), coding);
    const std::vector<int> counts(static_cast<std::size_t>(n), -1);
    const at::Tensor got = forms.same([&](const Form& form) {
      const at::Tensor out = form.blank({9000});
      const at::Tensor shards = shards_of(whole.codes, unit_of(block) / 2, counts);
      dequantize_blocks({form.of(shards), 8, 1, n}, form.of(whole.ranges), coding, out);
      return out;
    });
    EXPECT_TRUE(got.equal(whole.value));
  }
}

ABT_OP_TEST(UpdateScale, FollowsTheClampedShare) {
  // 5 * 128 = 640 sums: 4 % are 25.6, 1 % are 6.4.
  const auto next = [&](float scale, const std::vector<int>& counts) {
    const at::Tensor result = forms.same([&](const Form& form) {
      const at::Tensor tensor = form.of(at::full({1}, scale));
      update_scale(
          form.of(shards_of(at::zeros({5 * 64}, at::kByte), 64, counts)), 5, 128, 3, tensor);
      return tensor;
    });
    return result.item<float>();
  };
  EXPECT_EQ(next(2, {20, 0, 6}), 2 * 1.1F);
  EXPECT_EQ(next(2, {20, 0, 5}), 2.0F);
  EXPECT_EQ(next(2, {0, 7, 0}), 2.0F);
  EXPECT_EQ(next(2, {0, 0, 6}), 2 / 1.05F);
  EXPECT_EQ(next(2.9F, {640, 0, 0}), 3.0F) << "no further than the members";
  EXPECT_EQ(next(0.26F, {0, 0, 0}), 0.25F);
}

}  // namespace
}  // namespace abtrain::ops
