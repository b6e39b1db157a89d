#include "ops/quantize.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <functional>
#include <vector>

#include "code_buffers.h"
#include "kernel_test.h"
#include "kernels/blocks/hadamard.h"
#include "ops/cpu/hadamard.h"
#include "ops/quantize_cases.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(BlockNorms) : public KernelTest {};

TEST_F(ABT_KERNEL_SUITE(BlockNorms), EqualTheCpuToTheBit) {
  for (const int log : {1, 2, 3, 4, 6, 7, 10, 12, 13, 21}) {  // up to more tiles than lanes
    const std::int64_t block = std::int64_t{1} << log;
    const std::vector<std::int64_t> sizes =
        log < 21 ? std::vector<std::int64_t>{1, 1023, 1025, 3001, large(70001, 9001)}
                 : std::vector<std::int64_t>{1023, 1'200'001};
    for (const std::int64_t numel : sizes) {
      SCOPED_TRACE(testing::Message() << block << " of " << numel);
      const at::Tensor values = randn(numel + 2, 3);
      values[numel / 2] = numel == 1023 ? NAN : 3.0F;
      for (const std::int64_t begin : {0, 1}) {
        expect_same([&](const Form& form) {
          const at::Tensor norms = form.blank({padded(numel, block) / block});
          block_norms(form.of(values).narrow(0, begin, numel), block, norms);
          return std::vector{norms};
        });
      }
    }
  }
}

struct QuantizeCase {
  int log;
  bool rotate;
  Lanes lanes;
  std::int64_t numel;

  Coding coding() const {
    Coding coding = coding_of({std::int64_t{1} << log, rotate, lanes});
    coding.first = 384;
    return coding;
  }
};

// All kinds of codes, in blocks that a tile has many of and blocks of several tiles.
const QuantizeCase kQuantizeCases[] = {
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

class ABT_KERNEL_SUITE(Quantize) : public KernelTest {
 protected:
  static void for_each_case(
      const std::function<void(const QuantizeCase& c, std::int64_t numel)>& work) {
    for (const QuantizeCase& c : kQuantizeCases) {
      std::vector<std::int64_t> sizes{c.numel};
      if (!kEmulated) {
        sizes.insert(sizes.end(), {1, 1023, 1025, 70001});
      }
      for (const std::int64_t numel : sizes) {
        SCOPED_TRACE(testing::Message() << numel << " in blocks of 2^" << c.log);
        work(c, numel);
      }
    }
  }
  // Where each block of codes takes many threads, which take turns.
  static bool is_slow(const QuantizeCase& c) {
    return kEmulated && c.log > 10;
  }
  // Some clamp the numbers, and some are of no use.
  static at::Tensor ranges_of(const at::Tensor& values, std::int64_t block) {
    const at::Tensor ranges = norms_of(values, block).mul_(2.5);
    if (ranges.numel() > 2) {
      ranges[1] = 0;
      ranges[2] = kInfinity;
    }
    return ranges;
  }
  // Room for numbers and for eight more around them, which must stay.
  static at::Tensor frame(const Form& form, std::int64_t numel) {
    return form.of(at::full({numel + 8}, 5.0F));
  }
  static void expect_whole(const at::Tensor& frame) {
    EXPECT_EQ(frame.eq(5).sum().item<int>(), 8);
  }
};

TEST_F(ABT_KERNEL_SUITE(Quantize), EqualsTheCpuToTheBit) {
  for_each_case([](const QuantizeCase& c, std::int64_t numel) {
    const Coding coding = c.coding();
    const at::Tensor values = randn(numel, 3);
    const at::Tensor ranges = ranges_of(values, coding.block);
    const at::Tensor room = code_buffer(numel, coding);
    for (const std::int64_t begin : {4, 3}) {
      if (is_slow(c) && begin == 3) {
        continue;
      }
      for (const bool residual : {true, false}) {
        SCOPED_TRACE(testing::Message() << "at " << begin << ", residual " << residual);
        expect_same([&](const Form& form) {
          const at::Tensor framed = frame(form, numel);
          const at::Tensor u = framed.narrow(0, begin, numel).copy_(values);
          const at::Tensor codes = form.blank(room.sizes(), room.scalar_type());
          quantize_blocks(u, form.of(ranges), coding, residual, codes);
          expect_whole(framed);
          return std::vector{framed, codes};
        });
      }
    }
  });
}

TEST_F(ABT_KERNEL_SUITE(Quantize), TheWayBackEqualsTheCpuToTheBit) {
  for_each_case([](const QuantizeCase& c, std::int64_t numel) {
    const Coding coding = c.coding();
    const at::Tensor ranges = ranges_of(randn(numel, 3), coding.block);
    for (const int shards : {1, 3, 8}) {
      if (shards > 1 && c.lanes != Lanes::Nibble) {
        continue;
      }
      const at::Tensor room = code_buffer(numel, coding);
      const std::int64_t tails = shards > 1 ? shards * kernels::kTailBytes : 0;
      const at::Tensor codes = random_bytes(room.nbytes() + tails, 9).view(room.scalar_type());
      for (const std::int64_t begin : {4, 3}) {
        if (is_slow(c) && (begin == 3 || shards == 3)) {
          continue;
        }
        SCOPED_TRACE(testing::Message() << "at " << begin << " of " << shards);
        expect_same([&](const Form& form) {
          const at::Tensor framed = frame(form, numel);
          dequantize_blocks(
              {form.of(codes), 22.5F, 3, shards}, form.of(ranges), coding,
              framed.narrow(0, begin, numel));
          expect_whole(framed);
          return std::vector{framed};
        });
      }
    }
  });
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

class ABT_KERNEL_SUITE(SumCodes) : public KernelTest {};

TEST_F(ABT_KERNEL_SUITE(SumCodes), EqualTheCpuToTheBit) {
  for (const int members : {1, 2, 3, 8, 40}) {
    for (const std::int64_t size : {0L, 64L, 8256L, large(70016, 0)}) {
      SCOPED_TRACE(testing::Message() << members << " of " << size);
      expect_same([&](const Form& form) {
        const at::Tensor sums = form.blank({size + kernels::kTailBytes}, at::kByte);
        sum_codes(form.of(random_bytes(members * size, 9)), members, sums);
        return std::vector{sums};
      });
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(SumCodes), ChangeTheScaleAsOnTheCpu) {
  const std::int64_t units = 5;
  const int shards = 3;
  for (const int count : {0, 1, 8, 100}) {
    SCOPED_TRACE(count);
    const at::Tensor codes = at::zeros({units * 64 + shards * kernels::kTailBytes}, at::kByte);
    for (int i = 0; i < shards; ++i) {
      codes[units * (i + 1) / shards * 64 + i * kernels::kTailBytes] = count;
    }
    expect_same([&](const Form& form) {
      const at::Tensor scale = form.of(at::full({1}, 1.5F));
      update_scale(form.of(codes), units, 128, shards, scale);
      EXPECT_EQ(scale.item<float>() == 1.5F, count == 8);
      return std::vector{scale};
    });
  }
}

}  // namespace
}  // namespace abtrain::ops
