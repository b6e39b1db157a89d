#include "ops/magnitudes.h"

#include <ATen/ops/full.h>

#include <cmath>

#include "base/text.h"
#include "code_buffers.h"
#include "kernel_test.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(Magnitudes) : public KernelTest {
 protected:
  static void expect_same_magnitudes(const at::Tensor& u, CodeBlocks& blocks) {
    for (const Statistic statistic : {Statistic::Above, Statistic::Largest, Statistic::Moments}) {
      SCOPED_TRACE(
          formatted("{} blocks, statistic {}", blocks.size(), static_cast<int>(statistic)));
      expect_same([&](const Form& form) {
        const at::Tensor results = form.blank({values_of(statistic) * blocks.tensors()});
        magnitudes(form.of(u), blocks, statistic, results);
        return std::vector{results};
      });
    }
    for (const float cut : {0.6f, 0.0f, 1e9f, INFINITY, NAN}) {
      SCOPED_TRACE(formatted("{} blocks, cut {}", blocks.size(), cut));
      expect_same([&](const Form& form) {
        const at::Tensor results = form.blank({2 * blocks.tensors()});
        magnitudes(
            form.of(u), blocks, Statistic::Above, results,
            form.of(at::full({blocks.tensors()}, cut)));
        return std::vector{results};
      });
    }
  }
};

TEST_F(ABT_KERNEL_SUITE(Magnitudes), EqualTheCpuToTheBit) {
  auto sets = block_sets();
  sets.push_back(CodeBlocks({{0, 4096}, {4096, 4096 + 5}}));
  sets.push_back(
      CodeBlocks({{0, 1}, {1, 5001}, {6000, 4096}, {10096, 1}, {10097, large(90001, 9001)}}));
  for (CodeBlocks& blocks : sets) {
    expect_same_magnitudes(randn(blocks.end(), 4), blocks);
    expect_same_magnitudes(odd_numbers(blocks.end(), 4), blocks);
  }
}

TEST_F(ABT_KERNEL_SUITE(Magnitudes), OfMoreBlocksThanLanesEqualTheCpuToTheBit) {
  const std::int64_t few = 3 * kernels::kBlock;
  CodeBlocks blocks({{0, few}, {few, large(697, 258) * kernels::kBlock}});
  expect_same_magnitudes(randn(blocks.end(), 6), blocks);
}

}  // namespace
}  // namespace abtrain::ops
