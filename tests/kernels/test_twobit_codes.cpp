#include "kernels/codes/twobit_codes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "code_buffers.h"
#include "ops/team_host.h"
#include "ops/twobit_codes.h"

namespace abtrain::kernels {
namespace {

at::Tensor some_thresholds(const ops::CodeBlocks& blocks) {
  return random_floats(blocks.tensors(), 8).abs_();
}

// What is not finite among random codes.
at::Tensor some_codes(std::int64_t bytes) {
  const at::Tensor codes = at::randint(256, {bytes}, at::detail::createCPUGenerator(2), at::kByte);
  // The code 1 is rare: without its bit, save in some bytes.
  codes.bitwise_and_(0xAA).bitwise_or_(codes.bitwise_right_shift(1));
  codes[bytes / 2].fill_(0x1B);
  return codes;
}

TEST(TwoBitKernel, EncodesAsTheCpuToTheBit) {
  for (const auto& tensors : tensor_sets()) {
    const ops::CodeBlocks blocks(tensors);
    for (const CodeForm form : {CodeForm::TwoBits, CodeForm::Bytes}) {
      for (const float threshold : {0.0f, 0.7f, NAN, INFINITY}) {
        const at::Tensor thresholds = at::full({blocks.tensors()}, threshold);
        at::Tensor u[2];
        at::Tensor wire[2];
        for (int i = 0; i < 2; ++i) {
          u[i] = random_floats(blocks.end(), 3);
          u[i][blocks.end() - 1].fill_(NAN);
          u[i][blocks.end() / 2].fill_(-INFINITY);
          u[i][blocks.end() / 3].fill_(-0.0f);
          u[i][blocks.end() / 4].fill_(-0.7f);
          wire[i] = at::full({code_bytes(blocks, blocks.all(), form)}, 7 * i, at::kByte);
          const EncodeThreshold job{
              blocks.host(),
              blocks.size(),
              u[i].mutable_data_ptr<float>(),
              thresholds.const_data_ptr<float>(),
              wire[i].mutable_data_ptr<std::uint8_t>(),
              form};
          i == 0 ? work_on_host(job) : static_cast<void>(encode_threshold(job, nullptr));
        }
        EXPECT_TRUE(same_bits(u[0], u[1])) << threshold;
        EXPECT_TRUE(same_bits(wire[0], wire[1])) << threshold;
      }
    }
  }
}

// The mean of what `wire` has, by the CPU form and by the kernel.
void expect_same_means(ops::CodeBlocks& blocks, const at::Tensor& in, CodeWire wire, int workers) {
  const at::Tensor thresholds = some_thresholds(blocks);
  const at::Tensor wanted = at::full({blocks.end()}, 77.0f);
  const at::Tensor got = wanted.clone();
  ops::average_codes(in, wire, workers, blocks, thresholds, wanted);
  const AverageCodes job{
      blocks.host(),
      blocks.size(),
      in.const_data_ptr(),
      wire,
      code_bytes(blocks, blocks.all(), CodeForm::TwoBits),
      ops::sum_bits(workers),
      workers,
      thresholds.const_data_ptr<float>(),
      got.mutable_data_ptr<float>()};
  ASSERT_EQ(average_codes(job, nullptr), 0);
  EXPECT_TRUE(same_bits(got, wanted)) << workers << static_cast<int>(wire);
}

TEST(TwoBitKernel, AveragesAsTheCpuToTheBit) {
  for (const auto& tensors : tensor_sets()) {
    ops::CodeBlocks blocks(tensors);
    const std::int64_t stride = code_bytes(blocks, blocks.all(), CodeForm::TwoBits);
    for (const int workers : {1, 2, 5, 70, 200}) {
      expect_same_means(blocks, some_codes(workers * stride), CodeWire::Codes, workers);
      // Sums of any bits, those that no codes make among them.
      expect_same_means(
          blocks, random_words(ops::sum_words(blocks, blocks.all(), workers), 5), CodeWire::Planes,
          workers);
      if (workers <= kMaxByteWorkers) {
        const at::Tensor bytes = at::randint(
            256, {code_bytes(blocks, blocks.all(), CodeForm::Bytes)},
            at::detail::createCPUGenerator(6), at::kByte);
        expect_same_means(blocks, bytes, CodeWire::Bytes, workers);
      }
    }
  }
}

TEST(TwoBitKernel, PacksSumsAsTheCpuToTheBit) {
  for (const auto& tensors : tensor_sets()) {
    ops::CodeBlocks blocks(tensors);
    for (const int workers : {1, 2, 5, 200}) {
      for (const auto part : {blocks.all(), blocks.share(2, 1)}) {
        const std::int64_t stride = code_bytes(blocks, part, CodeForm::TwoBits);
        if (stride == 0) {
          continue;
        }
        const at::Tensor in = some_codes(workers * stride);
        const std::int64_t size = ops::sum_words(blocks, part, workers);
        const at::Tensor wanted = at::full({size}, 1, at::kInt);
        const at::Tensor got = at::full({size}, 2, at::kInt);
        ops::pack_sums(in, workers, blocks, part, wanted);
        const PackSums job{
            blocks.host() + part.begin,
            part.end - part.begin,
            in.const_data_ptr<std::uint8_t>(),
            stride,
            workers,
            reinterpret_cast<std::uint32_t*>(got.mutable_data_ptr<std::int32_t>()),
            ops::sum_bits(workers)};
        ASSERT_EQ(pack_sums(job, nullptr), 0);
        EXPECT_TRUE(same_bits(got, wanted)) << workers;
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::kernels
