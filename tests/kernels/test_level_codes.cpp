#include "kernels/codes/level_codes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "code_buffers.h"
#include "ops/cpu/simd.h"
#include "ops/level_codes.h"

namespace abtrain::kernels {
namespace {

std::vector<std::vector<std::int64_t>> size_sets() {
  return {{1}, {3, 4096, 5, 1}, {4099, 2, 4090, 31}};
}

at::Tensor some_numbers(std::int64_t numel) {
  at::Tensor u = random_floats(numel, 3);
  u[numel / 2].fill_(-INFINITY);
  u[numel / 3].fill_(-0.0f);
  u[numel - 1].fill_(NAN);
  return u;
}

at::Tensor codes_of(const ops::LevelTable& table, CodeForm form, int filled) {
  return at::full({code_bytes(table, form)}, filled, at::kByte);
}

TEST(LevelKernel, EncodesAboveACutAsTheCpuToTheBit) {
  for (const auto& sizes : size_sets()) {
    for (const float cut : {0.6f, 0.0f, 1e9f, NAN}) {
      for (const CodeForm form : {CodeForm::TwoBits, CodeForm::Bytes}) {
        ops::LevelTable table(sizes);
        const at::Tensor u = some_numbers(table.numel());
        const at::Tensor cuts = at::full({table.tensors()}, cut);
        std::vector<at::Tensor> sums, wires;
        const auto run = [&](const auto& encode) {
          const at::Tensor parts = at::empty({2 * table.blocks().size()});
          sums.push_back(at::full({2 * table.tensors()}, -1.0f));
          wires.push_back(codes_of(table, form, static_cast<int>(wires.size())));
          encode(EncodeAbove{
              table.on(at::kCPU), u.const_data_ptr<float>(), cuts.const_data_ptr<float>(), form,
              wires.back().mutable_data_ptr<std::uint8_t>(), parts.mutable_data_ptr<float>(),
              sums.back().mutable_data_ptr<float>()});
        };
        run([](const EncodeAbove& job) { ASSERT_EQ(encode_above(job, nullptr), 0); });
        for (const ops::Simd simd : {ops::Simd::Plain, ops::best_simd()}) {
          ops::simd_in_use = simd;
          run([](const EncodeAbove& job) { work_on_host(job); });
          EXPECT_TRUE(same_bits(sums[0], sums.back())) << cut;
          EXPECT_TRUE(same_bits(wires[0], wires.back())) << cut;
        }
      }
    }
  }
}

// More blocks than lanes. Without windows the job adds the parts that are there.
TEST(LevelKernel, AddsManyBlocksAsTheCpuToTheBit) {
  const std::vector<std::int64_t> firsts = {0, 3, 700};
  const at::Tensor parts = random_floats(1400, 6).abs_();
  const at::Tensor cuts = at::full({2}, 0.5f);
  EncodeAbove job{};
  job.table.tensors = firsts.data();
  job.table.tensor_count = 2;
  job.cuts = cuts.const_data_ptr<float>();
  job.parts = parts.mutable_data_ptr<float>();
  const at::Tensor wanted = at::full({4}, -1.0f), got = at::full({4}, -2.0f);
  job.sums = wanted.mutable_data_ptr<float>();
  work_on_host(job);
  job.sums = got.mutable_data_ptr<float>();
  ASSERT_EQ(encode_above(job, nullptr), 0);
  EXPECT_TRUE(same_bits(got, wanted));
}

TEST(LevelKernel, EncodesByChanceAsTheCpuToTheBit) {
  for (const auto& sizes : size_sets()) {
    for (const CodeForm form : {CodeForm::TwoBits, CodeForm::Bytes}) {
      ops::LevelTable table(sizes);
      const at::Tensor levels = random_floats(table.tensors(), 8).abs_().add_(0.1);
      levels[0].fill_(NAN);
      const at::Tensor u = some_numbers(table.numel());
      at::Tensor wire[2];
      for (int i = 0; i < 2; ++i) {
        wire[i] = codes_of(table, form, 7 * i);
        const EncodeByChance job{
            table.on(at::kCPU),
            u.const_data_ptr<float>(),
            levels.const_data_ptr<float>(),
            form,
            wire[i].mutable_data_ptr<std::uint8_t>(),
            random_stream(5, RandomPurpose::Rounding, 11, 3)};
        i == 0 ? work_on_host(job) : static_cast<void>(encode_by_chance(job, nullptr));
      }
      EXPECT_TRUE(same_bits(wire[0], wire[1])) << static_cast<int>(form);
    }
  }
}

TEST(LevelKernel, SubtractsAsTheCpuToTheBit) {
  for (const auto& sizes : size_sets()) {
    for (const CodeForm form : {CodeForm::TwoBits, CodeForm::Bytes}) {
      ops::LevelTable table(sizes);
      const at::Tensor levels = random_floats(table.tensors(), 8);
      levels[0].fill_(NAN);
      const at::Tensor codes = at::randint(
          form == CodeForm::Bytes ? 3 : 256, {codes_of(table, form, 0).numel()},
          at::detail::createCPUGenerator(6), at::kByte);
      at::Tensor u[2];
      for (int i = 0; i < 2; ++i) {
        u[i] = some_numbers(table.numel());
        const SubtractLevels job{
            table.on(at::kCPU), u[i].mutable_data_ptr<float>(), levels.const_data_ptr<float>(),
            form, codes.const_data_ptr<std::uint8_t>()};
        i == 0 ? work_on_host(job) : static_cast<void>(subtract_levels(job, nullptr));
      }
      if (table.numel() > 1) {
        EXPECT_FALSE(same_bits(u[0], some_numbers(table.numel())));
      }
      EXPECT_TRUE(same_bits(u[0], u[1])) << static_cast<int>(form);
    }
  }
}

TEST(LevelKernel, AveragesAsTheCpuToTheBit) {
  for (const int workers : {1, 3, 4}) {
    for (const auto& sizes : size_sets()) {
      ops::LevelTable table(sizes);
      const at::Tensor in = at::randint(
          256, {workers * table.record_bytes()}, at::detail::createCPUGenerator(2), at::kByte);
      for (int w = 0; w < workers; ++w) {
        in.narrow(0, w * table.record_bytes(), 4 * table.tensors())
            .copy_(random_floats(table.tensors(), 20 + w).view(at::kByte));
      }
      const at::Tensor sums = at::randint(
          2 * workers + 1, {table.numel()}, at::detail::createCPUGenerator(4), at::kByte);
      const at::Tensor levels = random_floats(table.tensors(), 9);
      std::vector<at::Tensor> means;
      const auto run = [&](const auto& average) {
        means.push_back(at::full({table.numel()}, -1.0f));
        average(AverageLevels{
            table.on(at::kCPU), in.const_data_ptr<std::uint8_t>(), workers,
            means.back().mutable_data_ptr<float>()});
      };
      run([](const AverageLevels& job) { ASSERT_EQ(average_levels(job, nullptr), 0); });
      for (const ops::Simd simd : {ops::Simd::Plain, ops::best_simd()}) {
        ops::simd_in_use = simd;
        run([](const AverageLevels& job) { work_on_host(job); });
        EXPECT_TRUE(same_bits(means[0], means.back())) << workers;
      }
      at::Tensor other[2];
      for (int i = 0; i < 2; ++i) {
        other[i] = at::full({table.numel()}, static_cast<float>(i));
        const AverageByteLevels job{
            table.on(at::kCPU), sums.const_data_ptr<std::uint8_t>(), workers,
            levels.const_data_ptr<float>(), other[i].mutable_data_ptr<float>()};
        i == 0 ? work_on_host(job) : static_cast<void>(average_byte_levels(job, nullptr));
      }
      EXPECT_TRUE(same_bits(other[0], other[1]));
    }
  }
}

}  // namespace
}  // namespace abtrain::kernels
