#include <ATen/Parallel.h>
#include <ATen/ops/stack.h>

#include "base/random.h"
#include "kernels/blocks/hadamard.h"
#include "ops/cpu/hadamard.h"
#include "quantize_cases.h"

namespace abtrain::ops {
namespace {

// Codes one by one, however they lie, in fp64.
at::Tensor unpacked(const at::Tensor& codes, Lanes lanes) {
  if (lanes == Lanes::Byte) {
    return codes.to(at::kDouble);
  }
  const int bits = lanes == Lanes::Nibble ? 4 : 16;
  const std::vector<at::Tensor> both = {
      codes.bitwise_and((1 << bits) - 1), codes.bitwise_right_shift(bits)};
  return at::stack(both, 1).view(-1).to(at::kDouble);
}

struct QuantizeCase {
  int log;
  bool rotate;
  Lanes lanes;
  std::int64_t numel;

  Coding coding() const {
    return coding_of(std::int64_t{1} << log, rotate, lanes);
  }
};

// All kinds of codes, in blocks that a tile has many of and blocks of several tiles.
constexpr QuantizeCase kQuantizeCases[] = {
    {1, true, Lanes::Byte, 300},      {2, true, Lanes::Nibble, 1},
    {3, false, Lanes::Pair, 900},     {4, true, Lanes::Byte, 200},
    {5, true, Lanes::Byte, 1100},     {6, true, Lanes::Pair, 500},
    {7, true, Lanes::Pair, 1023},     {7, true, Lanes::Nibble, 129},
    {10, true, Lanes::Byte, 2100},    {10, true, Lanes::Nibble, 1024},
    {10, false, Lanes::Nibble, 1500}, {11, true, Lanes::Byte, 2049},
    {12, true, Lanes::Nibble, 4096},  {12, true, Lanes::Byte, 1},
    {13, true, Lanes::Byte, 8001},    {13, false, Lanes::Pair, 5000},
    {13, true, Lanes::Pair, 1},       {14, true, Lanes::Nibble, 9000},
#ifndef ABTRAIN_EMULATED  // whose threads are too slow for these: HadamardKernels has their sums
    {15, true, Lanes::Byte, 65535},   {16, true, Lanes::Nibble, 131071},
    {17, true, Lanes::Byte, 262143},  {18, true, Lanes::Nibble, 524287},
#endif
};

// All of it from its definition, in float64 and with the matrix's entries.
ABT_OP_TEST(Quantize, EqualsItsDefinition) {
  for (const auto& [c] : cases(kQuantizeCases)) {
    if (c.log > 10) {
      continue;
    }
    const Coding coding = c.coding();
    const std::int64_t numel = 2500;
    const at::Tensor u = randn(numel, 3);
    const Quantized q = quantized(forms, u, coding);
    const auto block_of = [&](RandomPurpose purpose, std::int64_t block, std::uint32_t stream) {
      std::array<std::uint32_t, 4> words = {
          static_cast<std::uint32_t>(block), 0, coding.step, stream};
      kernels::philox(kernels::random_stream(coding.seed, purpose, 0, 0).key, words.data());
      return words;
    };
    std::vector<double> signs, halves;
    for (std::int64_t i = 0; i < padded(numel, coding.block); ++i) {
      const auto place = static_cast<std::size_t>(i + coding.first);
      const auto words = block_of(RandomPurpose::Signs, place / 128, coding.signs);
      signs.push_back(c.rotate && (words[place % 128 / 32] >> (place % 32) & 1) != 0 ? -1 : 1);
      const auto more = block_of(RandomPurpose::Rounding, place / 8, coding.rounding);
      halves.push_back(more[place % 8 / 2] >> (place % 2 * 16) & 65535u);
    }
    const auto blocks = [&](const at::Tensor& each) { return each.view({-1, coding.block}); };
    const at::Tensor sign = blocks(at::tensor(signs, at::kDouble));
    const double root = std::sqrt(static_cast<double>(coding.block));
    const auto rotated = [&](const at::Tensor& x) {
      return c.rotate ? at::matmul(x, hadamard_matrix(coding.block)) / root : x;
    };
    const at::Tensor step = q.ranges.to(at::kDouble).view({-1, 1}) / root / coding.limit;
    const at::Tensor x = in_rows(u.to(at::kDouble), coding.block, 128) * sign;
    const at::Tensor exact =
        (rotated(x) / step).nan_to_num(0).clamp(-coding.limit, coding.limit) + coding.offset;
    const at::Tensor got = blocks(unpacked(q.codes, c.lanes));
    // 2^-16 of a code, and the transform's rounding, may turn a rounding.
    const at::Tensor wanted = (exact + blocks(at::tensor(halves, at::kDouble)) / 65536).floor();
    EXPECT_LE(number(got.ne(wanted).sum()), 3);
    EXPECT_LE(distance(got, exact), 1.0001);
    const at::Tensor back = (sign * rotated((got - coding.offset) * step)).view(-1);
    EXPECT_LE(distance(q.rest, u - back.narrow(0, 0, numel)), 2e-5);
    // And the way back says the same.
    EXPECT_LE(distance(u - q.value, q.rest), 2e-6 * 6);
  }
}

// Some ranges clamp the numbers, and some are of no use.
at::Tensor odd_ranges(std::int64_t numel, std::int64_t block) {
  const at::Tensor ranges = norms_of(Forms({}), randn(numel, 3), block).mul(2.5);
  if (ranges.numel() > 2) {
    ranges[1] = 0;
    ranges[2] = kInfinity;
  }
  return ranges;
}

ABT_OP_TEST(Quantize, HasTheSameBitsThereAndBack) {
  for (const auto& [c] : cases(kQuantizeCases)) {
    const Coding coding = c.coding();
    // Each block of codes takes many threads, which take turns.
    const bool is_slow = kEmulated && c.log > 10;
    std::vector<std::int64_t> sizes{c.numel};
    if (!kEmulated) {
      sizes.insert(sizes.end(), {1, 1023, 1025, forms.large(70001, 5001)});
    }
    for (const std::int64_t numel : sizes) {
      const at::Tensor ranges = odd_ranges(numel, coding.block);
      for (const auto& [offset, residual] : cases({4, 3}, {true, false})) {
        if (!is_slow || offset == 4) {
          quantized(forms, randn(numel, 3), ranges, coding, residual, offset);
        }
      }
      for (const auto& [offset, shards] : cases({4, 3}, {1, 3, 8})) {
        if ((shards > 1 && c.lanes != Lanes::Nibble) || (is_slow && (offset == 3 || shards == 3))) {
          continue;
        }
        forms.same([&](const Form& form) {
          const at::Tensor like = blank_codes(form, numel, coding);
          const std::int64_t tails = shards > 1 ? shards * kernels::kTailBytes : 0;
          const at::Tensor codes = random_bytes(like.nbytes() + tails, 9).view(like.scalar_type());
          const at::Tensor out = form.blank({numel}, at::kFloat, offset);
          dequantize_blocks({form.of(codes), 22.5F, 3, shards}, form.of(ranges), coding, out);
          return out;
        });
      }
    }
  }
}

TEST(Quantize, HasTheSameBitsWithAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const auto& [c] : cases(kQuantizeCases)) {
    const Coding coding = c.coding();
    const auto with = [&](int count) {
      at::set_num_threads(count);
      const at::Tensor u = randn(70001, 3);
      const Quantized q = quantized(Forms({}), u, odd_ranges(u.numel(), coding.block), coding);
      return at::cat({q.codes.view(at::kByte), q.rest.view(at::kByte), q.value.view(at::kByte)});
    };
    EXPECT_TRUE(with(1).equal(with(3)));
  }
  at::set_num_threads(threads);
}

ABT_OP_TEST(Quantize, RoundsWithoutABias) {
  // One number between two codes, coded 16,384 times.
  const Coding coding = coding_of(128, false, Lanes::Byte);
  for (const auto& [between] : cases({0.0F, 0.03F, 0.5F, 0.8F})) {
    const std::int64_t numel = 16384;
    const at::Tensor u = at::full({numel}, between);
    // A step of 1: the codes are at -7.5, -6.5, ...
    const at::Tensor ranges = at::full({numel / 128}, 7.5F * std::sqrt(128.0F));
    const Quantized q = quantized(forms, u, ranges, coding, /*residual=*/false);
    EXPECT_TRUE(q.rest.equal(u)) << "no residual was wanted";
    EXPECT_NEAR(number(q.codes.to(at::kDouble).mean()) - 7.5, between, 4 * 0.5 / 128);
  }
}

ABT_OP_TEST(Quantize, ClampsToItsLimits) {
  const Coding coding = coding_of(128, false, Lanes::Nibble);
  const at::Tensor u = randn(128, 3).mul(100);
  const at::Tensor ranges = at::full({1}, 7 * std::sqrt(128.0F));  // a step of 1
  const Quantized q = quantized(forms, u, ranges, coding);
  const at::Tensor codes = unpacked(q.codes, Lanes::Nibble);
  EXPECT_TRUE(1 <= number(codes.min()) && number(codes.max()) <= 15);
  // The rest is in the residual.
  EXPECT_NEAR(number(u.sub(q.rest).abs().max()), 7, 1e-4);
}

ABT_OP_TEST(Quantize, ZeroAndTinyBlocksStayAsTheyAre) {
  for (const auto& [lanes] : cases({Lanes::Byte, Lanes::Nibble})) {
    const at::Tensor u = at::zeros({300});
    u.narrow(0, 128, 128).fill_(1e-30F);
    const Quantized q = quantized(forms, u, coding_of(128, true, lanes));
    EXPECT_TRUE(q.rest.equal(u));
    EXPECT_FALSE(q.value.any().item<bool>());
  }
}

ABT_OP_TEST(Quantize, AnInfiniteRangeShowsInTheEstimateAndLeavesNothing) {
  for (const float bad : kNotFinite) {
    const at::Tensor u = randn(300, 3);
    u[130] = bad;
    const Quantized q = quantized(forms, u, coding_of(128, true, Lanes::Byte));
    EXPECT_TRUE(q.value.narrow(0, 128, 128).isnan().all().item<bool>());
    EXPECT_TRUE(q.value.narrow(0, 0, 128).isfinite().all().item<bool>());
    EXPECT_TRUE(q.value.narrow(0, 256, 44).isfinite().all().item<bool>());
    EXPECT_FALSE(q.rest.narrow(0, 128, 128).any().item<bool>());
    EXPECT_TRUE(q.rest.isfinite().all().item<bool>());
  }
}

// Workers' codes added as integers are the codes of the sum.
ABT_OP_TEST(Quantize, CodesAdd) {
  for (const auto& [lanes] : cases({Lanes::Byte, Lanes::Pair})) {
    Coding coding = coding_of(64, true, lanes);
    const std::int64_t numel = 1000;
    const int n = lanes == Lanes::Byte ? 17 : 40;
    const at::Tensor ranges = at::full({padded(numel, 64) / 64}, 3.3F * 9);
    at::Tensor sum, mean = at::zeros({numel}, at::kDouble);
    for (int i = 0; i < n; ++i) {
      const at::Tensor u = randn(numel, 60 + i).mul(2);
      coding.rounding = static_cast<std::uint32_t>(i);
      const Quantized q = quantized(forms, u, ranges, coding);
      sum = sum.defined() ? sum + q.codes : q.codes;
      mean += u.to(at::kDouble).sub(q.rest.to(at::kDouble)).div(n);
    }
    const auto members = static_cast<float>(n);
    const at::Tensor got = forms.same([&](const Form& form) {
      const at::Tensor out = form.blank({numel});
      dequantize_blocks({form.of(sum), 7.5F * members, members}, form.of(ranges), coding, out);
      return out;
    });
    EXPECT_LE(distance(got, mean), 1e-5);
  }
}

TEST(Quantize, RefusesWhatDoesNotFit) {
  const at::Tensor u = randn(300, 3), ranges = at::ones({3});
  const at::Tensor codes = at::zeros({384}, at::kByte);
  Coding coding = coding_of(128, true, Lanes::Byte);
  EXPECT_NO_THROW(quantize_blocks(u, ranges, coding, true, codes));
  EXPECT_REFUSED(quantize_blocks(u, ranges.narrow(0, 0, 2), coding, true, codes));
  EXPECT_REFUSED(quantize_blocks(u, ranges, coding, true, codes.narrow(0, 0, 300)));
  coding.first = 64;
  EXPECT_REFUSED(quantize_blocks(u, ranges, coding, true, codes));
  coding.first = 0;
  coding.offset = 8;
  EXPECT_REFUSED(quantize_blocks(u, ranges, coding, true, codes));
  EXPECT_REFUSED(block_norms(u, 100, ranges));
  EXPECT_REFUSED(sum_codes(codes, 3, codes));
}

#ifdef ABTRAIN_EMULATED
// Codes are too coarse to show the last bits of what they were made of.
TEST(HadamardKernels, GoOnAboveATileToTheBit) {
  for (int log = kernels::kTileLog; log <= kernels::kTileLog + 6; ++log) {
    const at::Tensor wanted = randn(std::int64_t{2} << log, 3);
    const at::Tensor got = wanted.clone();
    const auto transform = [&](const at::Tensor& x, int of_log) {
      for (std::int64_t begin = 0; begin < x.numel(); begin += std::int64_t{1} << of_log) {
        hadamard_block(x.mutable_data_ptr<float>() + begin, of_log);
      }
    };
    transform(wanted, log);
    transform(got, kernels::kTileLog);
    float* const data = got.mutable_data_ptr<float>();
    ASSERT_EQ(kernels::hadamard_above_tile(data, got.numel(), log, nullptr), 0);
    EXPECT_TRUE(same_bits(got, wanted)) << log;
  }
}
#endif

}  // namespace
}  // namespace abtrain::ops
