// Codes that lie in shards, as workers quantize them, and the scale that all
// workers then agree on.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ops/quantize.h"
#include "quantize_cases.h"

namespace abtrain::ops {
namespace {

// Shards with tails behind them, as an all-gather makes them.
at::Tensor shards_of(
    const at::Tensor& codes, std::int64_t unit_bytes, int n,
    const std::vector<std::uint32_t>& counts) {
  const std::int64_t units = codes.numel() / unit_bytes;
  const at::Tensor all = at::zeros({codes.numel() + n * kernels::kTailBytes}, at::kByte);
  auto* to = all.mutable_data_ptr<std::uint8_t>();
  for (int i = 0; i < n; ++i) {
    const std::int64_t begin = units * i / n * unit_bytes;
    const std::int64_t end = units * (i + 1) / n * unit_bytes;
    std::memcpy(
        to, codes.const_data_ptr<std::uint8_t>() + begin, static_cast<std::size_t>(end - begin));
    to += end - begin;
    std::memcpy(to, &counts[static_cast<std::size_t>(i)], 4);
    to += kernels::kTailBytes;
  }
  return all;
}

TEST(Dequantize, FindsCodesInShards) {
  for (const std::int64_t block : {32, 128, 1024, 2048}) {
    for (const int n : {2, 3, 8}) {
      const Coding coding = coding_of({block, true, Lanes::Nibble});
      const std::int64_t numel = 9000;
      const Quantized whole = quantize_and_back(randn(numel, 3), coding);
      const at::Tensor got = at::empty({numel});
      dequantize_blocks(
          {shards_of(
               whole.codes, unit_of(block) / 2, n,
               std::vector<std::uint32_t>(static_cast<std::size_t>(n), ~0u)),
           8, 1, n},
          whole.ranges, coding, got);
      EXPECT_TRUE(got.equal(whole.value)) << block << " " << n;
    }
  }
}

TEST(UpdateScale, FollowsTheClampedShare) {
  const std::int64_t units = 5;
  const int n = 3;
  // 5 * 128 = 640 sums: 4 % are 25.6, 1 % are 6.4.
  const auto next = [&](float scale, std::vector<std::uint32_t> counts) {
    const at::Tensor codes = at::zeros({units * 64}, at::kByte);
    const at::Tensor tensor = at::full({1}, scale);
    update_scale(shards_of(codes, 64, n, counts), units, 128, n, tensor);
    return tensor.item<float>();
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
