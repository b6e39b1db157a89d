#include "kernels/codes/quantize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "code_buffers.h"
#include "kernels/blocks/hadamard.h"
#include "ops/cpu/hadamard.h"
#include "ops/quantize.h"
#include "ops/quantize_job.h"

namespace abtrain::kernels {
namespace {

at::Tensor numbers(std::int64_t numel, std::uint64_t seed = 3) {
  return at::randn({numel}, at::detail::createCPUGenerator(seed), at::kFloat);
}

at::Tensor bytes(std::int64_t numel) {
  at::Generator generator = at::detail::createCPUGenerator(9);
  return at::randint(0, 256, {numel}, generator, at::kLong).to(at::kByte);
}

void hadamard(const at::Tensor& x, int log) {
  for (std::int64_t begin = 0; begin < x.numel(); begin += std::int64_t{1} << log) {
    ops::hadamard_block(x.mutable_data_ptr<float>() + begin, log);
  }
}

TEST(HadamardKernel, GoesOnAboveATileToTheBit) {
  for (int log = kTileLog; log <= kTileLog + 6; ++log) {
    const at::Tensor wanted = numbers(std::int64_t{2} << log);
    const at::Tensor got = wanted.clone();
    hadamard(wanted, log);
    hadamard(got, kTileLog);
    ASSERT_EQ(hadamard_above_tile(got.mutable_data_ptr<float>(), got.numel(), log, nullptr), 0);
    EXPECT_TRUE(same_bits(got, wanted)) << log;
  }
}

TEST(NormsKernel, EqualsTheCpuFormToTheBit) {
  for (const int log : {1, 7, 10, 13, 21}) {  // up to more tiles than lanes
    for (const std::int64_t numel : {1023, log < 21 ? 3001 : 1'200'001}) {
      const std::int64_t block = std::int64_t{1} << log;
      const std::int64_t unit = ops::unit_of(block);
      const std::int64_t blocks = (numel + unit - 1) / unit * unit / block;
      const at::Tensor u = numbers(numel + 1).narrow(0, 1, numel).clone();
      u[numel / 2] = numel == 1023 ? std::numeric_limits<float>::quiet_NaN() : 3.0F;
      const at::Tensor wanted = at::empty({blocks});
      ops::block_norms(u, block, wanted);
      for (const bool aligned : {true, false}) {
        const at::Tensor padded_in = at::zeros({numel + 1});
        const at::Tensor in = padded_in.narrow(0, aligned ? 0 : 1, numel);
        in.copy_(u);
        const at::Tensor got = at::zeros({blocks});
        const at::Tensor tiles = at::zeros({log > kTileLog ? blocks << (log - kTileLog) : 0});
        ASSERT_EQ(
            block_norms(
                {in.const_data_ptr<float>(), numel, blocks, log, got.mutable_data_ptr<float>(),
                 tiles.mutable_data_ptr<float>()},
                nullptr),
            0);
        EXPECT_TRUE(same_bits(got, wanted)) << log << " " << numel;
      }
    }
  }
}

struct Case {
  int log;
  bool rotate;
  Lanes lanes;
  std::int64_t numel;
};

const Case kCases[] = {{1, true, Lanes::Byte, 300},     {2, true, Lanes::Nibble, 1},
                       {3, false, Lanes::Pair, 900},    {5, true, Lanes::Byte, 1100},
                       {7, true, Lanes::Pair, 1023},    {10, true, Lanes::Byte, 2100},
                       {10, true, Lanes::Nibble, 1024}, {10, false, Lanes::Nibble, 1500},
                       {11, true, Lanes::Byte, 2049},   {12, true, Lanes::Nibble, 4096},
                       {13, true, Lanes::Byte, 8001},   {13, false, Lanes::Pair, 5000},
                       {14, true, Lanes::Nibble, 9000}};

class QuantizeKernel : public testing::TestWithParam<Case> {
 protected:
  ops::Coding coding() const {
    const Case& c = GetParam();
    ops::Coding coding{.block = std::int64_t{1} << c.log, .rotate = c.rotate, .lanes = c.lanes};
    coding.seed = 0x123456789abcdef;
    coding.step = 41;
    coding.signs = 3;
    coding.rounding = 7 << 16 | 3;
    coding.first = 384;
    if (c.lanes == Lanes::Nibble) {
      coding.limit = 7;
      coding.offset = 8;
    }
    return coding;
  }
  std::int64_t padded() const {
    const std::int64_t unit = ops::unit_of(coding().block);
    return (GetParam().numel + unit - 1) / unit * unit;
  }
  at::Tensor ranges() const {
    const at::Tensor u = numbers(GetParam().numel);
    const at::Tensor norms = at::empty({padded() / coding().block});
    ops::block_norms(u, coding().block, norms);
    norms.mul_(2.5);  // so that some are clamped
    if (norms.numel() > 2) {
      norms[1] = 0;
      norms[2] = std::numeric_limits<float>::infinity();
    }
    return norms;
  }
  at::Tensor code_buffer() const {
    return at::zeros(
        {GetParam().lanes == Lanes::Byte ? padded() : padded() / 2},
        GetParam().lanes == Lanes::Pair ? at::kInt : at::kByte);
  }
};

TEST_P(QuantizeKernel, EqualsTheCpuFormToTheBit) {
  const std::int64_t numel = GetParam().numel;
  for (const auto& [residual, aligned] :
       {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
    if (!aligned && GetParam().log > 10) {
      continue;  // many threads are slow here
    }
    const at::Tensor wanted = numbers(numel);
    const at::Tensor wanted_codes = code_buffer();
    ops::quantize_blocks(wanted, ranges(), coding(), residual, wanted_codes);
    // One number more on either side, which must stay.
    const at::Tensor around = at::full({numel + 8}, 5.0F);
    const at::Tensor u = around.narrow(0, aligned ? 4 : 3, numel);
    u.copy_(numbers(numel));
    const at::Tensor codes = code_buffer();
    const at::Tensor held = ranges();
    Quantize job = ops::quantize_job(u, held, coding(), residual, codes);
    const at::Tensor scratch = at::empty({padded()});
    job.scratch = scratch.mutable_data_ptr<float>();
    ASSERT_EQ(quantize_blocks(job, nullptr), 0);
    EXPECT_TRUE(same_bits(codes, wanted_codes));
    EXPECT_TRUE(same_bits(u.clone(), wanted));
    EXPECT_EQ(around.eq(5).sum().item<int>(), 8);
  }
}

TEST_P(QuantizeKernel, TheWayBackEqualsTheCpuFormToTheBit) {
  const std::int64_t numel = GetParam().numel;
  const at::Tensor held = ranges();
  const std::vector<int> all =
      GetParam().lanes == Lanes::Nibble ? std::vector<int>{1, 3, 8} : std::vector<int>{1};
  for (const int shards : all) {
    const std::int64_t tails = shards > 1 ? shards * kTailBytes : 0;
    const std::int64_t lanes = code_buffer().numel() + tails;
    const at::Tensor codes =
        GetParam().lanes == Lanes::Pair ? bytes(4 * lanes).view(at::kInt) : bytes(lanes);
    const ops::Sums sums{codes, 22.5F, 3, shards};
    const at::Tensor wanted = at::empty({numel});
    ops::dequantize_blocks(sums, held, coding(), wanted);
    for (const bool aligned : {true, false}) {
      if (GetParam().log > 10 && (!aligned || shards == 3)) {
        continue;  // many threads are slow here
      }
      const at::Tensor around = at::full({numel + 8}, 5.0F);
      const at::Tensor out = around.narrow(0, aligned ? 4 : 3, numel);
      Dequantize job = ops::dequantize_job(sums, held, coding(), out);
      const at::Tensor scratch = at::empty({padded()});
      job.scratch = scratch.mutable_data_ptr<float>();
      ASSERT_EQ(dequantize_blocks(job, nullptr), 0);
      EXPECT_TRUE(same_bits(out.clone(), wanted)) << shards;
      EXPECT_EQ(around.eq(5).sum().item<int>(), 8);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, QuantizeKernel, testing::ValuesIn(kCases), [](const auto& test) {
  return "Log" + std::to_string(test.param.log) + "x" + std::to_string(test.param.numel);
});

TEST(SumCodesKernel, EqualsTheCpuFormToTheBit) {
  for (const int n : {2, 40}) {
    for (const std::int64_t size : {0, 8256}) {
      const at::Tensor in = bytes(n * size);
      const at::Tensor wanted = at::empty({size + kTailBytes}, at::kByte);
      ops::sum_codes(in, n, wanted);
      const at::Tensor got = at::zeros_like(wanted);
      const at::Tensor partial = at::empty({kPartials}, at::kInt);
      SumCodes job;
      job.in = in.const_data_ptr<std::uint8_t>();
      job.out = got.mutable_data_ptr<std::uint8_t>();
      job.bytes = size;
      job.members = n;
      job.partial = static_cast<std::uint32_t*>(partial.mutable_data_ptr());
      ASSERT_EQ(sum_codes(job, nullptr), 0);
      EXPECT_TRUE(got.equal(wanted)) << n << " " << size;
    }
  }
}

TEST(ScaleKernel, EqualsTheCpuForm) {
  const std::int64_t units = 5;
  const int n = 3;
  for (const std::uint32_t count : {0u, 1u, 8u, 100u}) {
    const at::Tensor codes = at::zeros({units * 64 + n * kTailBytes}, at::kByte);
    for (int i = 0; i < n; ++i) {
      std::memcpy(
          codes.mutable_data_ptr<std::uint8_t>() + units * (i + 1) / n * 64 + i * kTailBytes,
          &count, sizeof(count));
    }
    const at::Tensor wanted = at::full({1}, 1.5F);
    const at::Tensor got = wanted.clone();
    ops::update_scale(codes, units, 128, n, wanted);
    UpdateScale job;
    job.codes = codes.const_data_ptr<std::uint8_t>();
    job.units = units;
    job.unit_bytes = 64;
    job.shards = n;
    job.scale = got.mutable_data_ptr<float>();
    ASSERT_EQ(update_scale(job, nullptr), 0);
    EXPECT_TRUE(got.equal(wanted)) << count;
    EXPECT_EQ(got.item<float>() == 1.5F, count == 8) << count;
  }
}

}  // namespace
}  // namespace abtrain::kernels
