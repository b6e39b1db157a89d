#include <ATen/ops/cat.h>

#include "compress/code_schemes.h"

namespace abtrain::compress {
namespace {

ReducerOptions hylo(const std::string& transport = "int8") {
  return scheme("hylo", {{"transport", transport}});
}

TEST(Hylo, LinearBytesAreThoseOfTheFormula) {
  const double d = 64 * 4096;
  const auto slots = one_slot({64, 4096});
  const auto bytes = [&](const std::string& transport, int n) {
    // Less the all-reduce of the two sums.
    return mean_bytes(hylo(transport), slots, n) - 2.0 * (n - 1) / n * 8;
  };
  EXPECT_EQ(bytes("int8", 4), 2 * 3.0 / 4 * d);
  EXPECT_EQ(bytes("a2a", 4), 3.0 / 4 * d * (2 + 4) / 8);
  EXPECT_EQ(bytes("a2a", 8), 7.0 / 8 * d * (2 + 5) / 8);
  EXPECT_EQ(bytes("gather", 4), 3 * d * 2 / 8);
  const auto fp16 = [&](int n) { return 2.0 * (n - 1) / n * 2 * d; };
  EXPECT_NEAR(fp16(4) / bytes("a2a", 4), 5.33, 0.01);
  EXPECT_LT(bytes("gather", 15), fp16(15));
  EXPECT_GE(bytes("gather", 16), fp16(16));
  for (const auto& [transport, bits] :
       {std::pair("int8", 8), std::pair("a2a", 6), std::pair("gather", 2)}) {
    EXPECT_EQ(volume_of(hylo(transport), slots).payload_bits, bits * d + 2 * 32);
  }
}

// 16384 / 65536: half of the kernels; never less than a twentieth.
TEST(Hylo, ConvolutionsSendTheRootOfTheirShare) {
  ReducerOptions options = hylo();
  options.min_numel.reset();
  const auto values = [&](std::vector<std::int64_t> sizes) {
    const double rows = static_cast<double>(sizes[0]);
    return mean_bytes(options, one_slot(std::move(sizes)), 2) - rows * 4;
  };
  EXPECT_EQ(values({64, 64, 4, 4}), 2 * 32 * 1024);
  EXPECT_EQ(values({16, 64, 4, 4}), 2 * 16 * 1024);
  EXPECT_EQ(values({63, 65, 4, 4}), 2 * 32 * 1040);
  EXPECT_EQ(values({1000, 1024, 4, 4}), 2 * 50 * 16384);
  EXPECT_EQ(volume_of(options, one_slot({64, 64, 4, 4})).payload_bits, 32 * 64 + 16 * 32 * 1024);
  // Below min_numel, or of no shape that it knows: fp16, no norms.
  EXPECT_EQ(mean_bytes(options, one_slot({16, 60, 4, 4}), 2), 2 * 15360);
  EXPECT_EQ(mean_bytes(options, one_slot({20000}), 2), 2 * 20000);
  EXPECT_EQ(mean_bytes(options, one_slot({2, 100, 100}), 2), 2 * 20000);
}

// A rate of 1 sends every kernel: the fp16 baseline to the bit.
TEST(Hylo, AllKernelsAreTheMeanOfFp16) {
  const auto slots = one_slot({30, 7, 3, 3});
  ReducerOptions options = hylo();
  options.min_numel = 1890;
  const ReducerOptions plain = options_of("plain", {{"dtype", "fp16"}});
  for (const int n : {2, 3, 4, 8}) {
    const auto gradients = gradients_of(n, 1890);
    const auto wanted = estimates_of(plain, slots, gradients);
    EXPECT_TRUE(estimates_of(options, slots, gradients)[0].equal(wanted[0]));
  }
}

TEST(Hylo, SmallAndFlatTensorsAreTheMeanOfFp16) {
  const std::vector<Slot> slots = {
      {"bias", 0, {300}}, {"small", 300, {9, 10}, 1}, {"cube", 390, {5, 5, 8}, 2}};
  ReducerOptions options = hylo();
  options.min_numel = 100;
  const ReducerOptions plain = options_of("plain", {{"dtype", "fp16"}});
  const auto gradients = gradients_of(3, numel_of(slots));
  EXPECT_TRUE(
      estimates_of(options, slots, gradients)[0].equal(estimates_of(plain, slots, gradients)[0]));
}

TEST(Hylo, SendsTheKernelsThatMatterToAll) {
  constexpr std::int64_t rows = 40;
  constexpr std::int64_t length = 27;
  constexpr std::int64_t chosen = 2;  // a twentieth
  const auto slots = one_slot({rows, 3, 3, 3});
  const auto gradients = gradients_of(3, rows * length);
  const at::Tensor mean = sum_of(gradients).div(3.0).view({rows, length});
  at::Tensor norms = at::zeros({rows}, at::kDouble);
  for (const at::Tensor& g : gradients) {
    norms.add_(g.to(at::kDouble).view({rows, length}).square().sum(1));
  }
  const at::Tensor best = norms.argsort(0, /*descending=*/true);
  const at::Tensor estimate = estimates_of(hylo(), slots, gradients)[0].view({rows, length});
  for (std::int64_t i = 0; i < rows; ++i) {
    const at::Tensor row = estimate[best[i].item<std::int64_t>()];
    if (i < chosen) {
      EXPECT_TRUE(row.to(at::kDouble).allclose(mean[best[i].item<std::int64_t>()], 2e-3, 1e-3));
    } else {
      EXPECT_TRUE(row.eq(0).all().item<bool>());
    }
  }
}

TEST(Hylo, LinearLayersShareAThreshold) {
  // Two layers of other sizes of gradients, in one bucket.
  const std::vector<Slot> slots = {{"a", 0, {100, 50}}, {"b", 5000, {3, 100}, 1}};
  for (const int n : {2, 3}) {
    auto gradients = gradients_of(n, 5300);
    for (const at::Tensor& g : gradients) {
      g.narrow(0, 5000, 300).mul_(0.01);
    }
    std::vector<at::Tensor> wanted;
    for (const auto& [begin, numel] : {std::pair(0, 5000), std::pair(5000, 300)}) {
      double squares = 0;
      double sizes = 0;
      for (const at::Tensor& g : gradients) {
        const at::Tensor part = g.narrow(0, begin, numel).to(at::kDouble);
        squares += part.square().sum().item<double>();
        sizes += part.abs().sum().item<double>();
      }
      const double t = 0.7 * squares / sizes;
      at::Tensor sum = at::zeros({numel}, at::kDouble);
      for (const at::Tensor& g : gradients) {
        const at::Tensor part = g.narrow(0, begin, numel).to(at::kDouble);
        sum.add_(part.ge(t).to(at::kDouble), t / n);
        sum.sub_(part.le(-t).to(at::kDouble), t / n);
      }
      wanted.push_back(sum);
    }
    for (const std::string transport : {"int8", "a2a", "gather"}) {
      EXPECT_TRUE(estimates_of(hylo(transport), slots, gradients)[0]
                      .to(at::kDouble)
                      .allclose(at::cat(wanted), 1e-5, 1e-8))
          << transport;
    }
  }
}

}  // namespace
}  // namespace abtrain::compress
