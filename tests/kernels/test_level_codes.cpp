#include "kernels/level_codes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "code_buffers.h"
#include "ops/level_codes.h"
#include "ops/level_codes_backends.h"

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

TEST(LevelKernel, AddsUpAsTheCpuToTheBit) {
  for (const auto& sizes : size_sets()) {
    for (const float cut : {0.6f, 1e9f, NAN, -1.0f}) {
      ops::LevelTable table(sizes);
      const at::Tensor u = random_floats(table.numel(), 3);
      const at::Tensor cuts = at::full({table.tensors()}, cut);
      const at::Tensor wanted = at::empty({2 * table.tensors()});
      const at::Tensor got = at::full({2 * table.tensors()}, -1.0f);
      const ops::CodeBlocks& blocks = table.blocks();
      const at::Tensor parts = at::empty({2 * blocks.size()});
      ops::survivors(u, table, cuts, wanted);
      const Survivors job{
          blocks.host(),
          blocks.size(),
          blocks.firsts().data(),
          table.tensors(),
          u.const_data_ptr<float>(),
          cuts.const_data_ptr<float>(),
          parts.mutable_data_ptr<float>(),
          got.mutable_data_ptr<float>()};
      ASSERT_EQ(survivors(job, nullptr), 0);
      EXPECT_TRUE(same_bits(got, wanted)) << cut;
    }
  }
}

TEST(LevelKernel, FindsTheLargestAsTheCpu) {
  for (const bool finite : {true, false}) {
    for (const auto& sizes : size_sets()) {
      ops::LevelTable table(sizes);
      const at::Tensor u = finite ? random_floats(table.numel(), 4)
                                  : some_numbers(table.numel());
      const at::Tensor wanted = at::empty({table.tensors()});
      const at::Tensor got = at::full({table.tensors()}, -1.0f);
      const ops::CodeBlocks& blocks = table.blocks();
      const at::Tensor parts = at::empty({blocks.size()});
      ops::largest(u, table, wanted);
      const Largest job{
          blocks.host(),
          blocks.size(),
          blocks.firsts().data(),
          table.tensors(),
          u.const_data_ptr<float>(),
          parts.mutable_data_ptr<float>(),
          got.mutable_data_ptr<float>()};
      ASSERT_EQ(largest(job, nullptr), 0);
      EXPECT_TRUE(same_bits(got, wanted));
    }
  }
}

TEST(LevelKernel, EncodesAsTheCpuToTheBit) {
  for (const auto& sizes : size_sets()) {
    for (const bool bytes : {false, true}) {
      for (const bool by_chance : {false, true}) {
        for (const bool residual : {false, true}) {
          ops::LevelTable table(sizes);
          const at::Tensor cuts = at::full({table.tensors()}, 0.6f);
          const at::Tensor levels =
              random_floats(table.tensors(), 8).abs_().add_(0.1);
          levels[0].fill_(by_chance ? NAN : 0.0f);
          const auto key = random_key(5, RandomPurpose::Rounding);
          at::Tensor u[2];
          at::Tensor wire[2];
          for (int i = 0; i < 2; ++i) {
            u[i] = some_numbers(table.numel());
            wire[i] = at::full(
                {bytes ? table.numel() : packed_bytes(table.numel())},
                7 * i,
                at::kByte);
            const EncodeLevels job{
                table.on(at::kCPU),
                u[i].mutable_data_ptr<float>(),
                levels.const_data_ptr<float>(),
                by_chance ? nullptr : cuts.const_data_ptr<float>(),
                residual,
                bytes,
                {key[0], key[1]},
                11,
                3,
                wire[i].mutable_data_ptr<std::uint8_t>()};
            i == 0 ? ops::encode_levels_cpu(job)
                   : static_cast<void>(encode_levels(job, nullptr));
          }
          EXPECT_TRUE(same_bits(u[0], u[1]));
          EXPECT_TRUE(same_bits(wire[0], wire[1]))
              << bytes << by_chance << residual;
        }
      }
    }
  }
}

TEST(LevelKernel, AveragesAsTheCpuToTheBit) {
  constexpr int kWorkers = 3;
  for (const auto& sizes : size_sets()) {
    ops::LevelTable table(sizes);
    const at::Tensor in = at::randint(
        256,
        {kWorkers * table.record_bytes()},
        at::detail::createCPUGenerator(2),
        at::kByte);
    for (int w = 0; w < kWorkers; ++w) {
      in.narrow(0, w * table.record_bytes(), 4 * table.tensors())
          .copy_(random_floats(table.tensors(), 20 + w).view(at::kByte));
    }
    const at::Tensor sums = at::randint(
        2 * kWorkers + 1,
        {table.numel()},
        at::detail::createCPUGenerator(4),
        at::kByte);
    const at::Tensor levels = random_floats(table.tensors(), 9);
    at::Tensor mean[2];
    at::Tensor other[2];
    for (int i = 0; i < 2; ++i) {
      mean[i] = at::full({table.numel()}, static_cast<float>(i));
      other[i] = mean[i].clone();
      const AverageLevels job{
          table.on(at::kCPU),
          in.const_data_ptr<std::uint8_t>(),
          kWorkers,
          mean[i].mutable_data_ptr<float>()};
      const AverageByteLevels byte_job{
          table.on(at::kCPU),
          sums.const_data_ptr<std::uint8_t>(),
          kWorkers,
          levels.const_data_ptr<float>(),
          other[i].mutable_data_ptr<float>()};
      if (i == 0) {
        ops::average_levels_cpu(job);
        ops::average_byte_levels_cpu(byte_job);
      } else {
        ASSERT_EQ(average_levels(job, nullptr), 0);
        ASSERT_EQ(average_byte_levels(byte_job, nullptr), 0);
      }
    }
    EXPECT_TRUE(same_bits(mean[0], mean[1]));
    EXPECT_TRUE(same_bits(other[0], other[1]));
  }
}

}  // namespace
}  // namespace abtrain::kernels
