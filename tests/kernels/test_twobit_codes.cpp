#include "ops/twobit_codes.h"

#include <ATen/ops/zeros.h>

#include <cmath>

#include "code_buffers.h"
#include "kernel_test.h"
#include "kernels/codes/twobit_codes.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(TwoBitCodes) : public KernelTest {};

// What is not finite among random codes.
at::Tensor some_codes(std::int64_t bytes) {
  const at::Tensor codes = random_bytes(bytes, 2);
  // The code 1 is rare: without its bit, save in some bytes.
  codes.bitwise_and_(0xAA).bitwise_or_(codes.bitwise_right_shift(1));
  codes[bytes / 2].fill_(0x1B);
  return codes;
}

TEST_F(ABT_KERNEL_SUITE(TwoBitCodes), EncodeAsTheCpuToTheBit) {
  for (CodeBlocks& blocks : block_sets()) {
    const at::Tensor values = odd_numbers(blocks.end(), 3);
    values[blocks.end() / 4].fill_(-0.7f);
    for (const CodeForm code : {CodeForm::TwoBits, CodeForm::Bytes}) {
      for (const float threshold : {0.0f, 0.7f, NAN, INFINITY}) {
        SCOPED_TRACE(threshold);
        expect_same([&](const Form& form) {
          const at::Tensor u = form.of(values);
          const at::Tensor wire = form.blank({code_bytes(blocks, blocks.all(), code)}, at::kByte);
          encode_threshold(u, blocks, form.of(at::full({blocks.tensors()}, threshold)), wire, code);
          return std::vector{u, wire};
        });
      }
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(TwoBitCodes), AverageAsTheCpuToTheBit) {
  for (CodeBlocks& blocks : block_sets()) {
    const at::Tensor thresholds = randn(blocks.tensors(), 8).abs_();
    for (const int workers : {1, 2, 5, 70, 200}) {
      SCOPED_TRACE(workers);
      const auto expect_same_means = [&](const at::Tensor& in, CodeWire wire) {
        expect_same([&](const Form& form) {
          const at::Tensor mean = form.of(at::zeros({blocks.end()}));  // which has gaps
          average_codes(form.of(in), wire, workers, blocks, form.of(thresholds), mean);
          return std::vector{mean};
        });
      };
      expect_same_means(
          some_codes(workers * code_bytes(blocks, blocks.all(), CodeForm::TwoBits)),
          CodeWire::Codes);
      // Sums of any bits, those that no codes make among them.
      expect_same_means(
          random_words(sum_words(blocks, blocks.all(), workers), 5), CodeWire::Planes);
      if (workers <= kernels::kMaxByteWorkers) {
        expect_same_means(
            random_bytes(code_bytes(blocks, blocks.all(), CodeForm::Bytes), 6), CodeWire::Bytes);
      }
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(TwoBitCodes), PackSumsAsTheCpuToTheBit) {
  for (CodeBlocks& blocks : block_sets()) {
    for (const int workers : {1, 2, 5, 200}) {
      SCOPED_TRACE(workers);
      for (const auto part : {blocks.all(), blocks.share(2, 1)}) {
        const std::int64_t stride = code_bytes(blocks, part, CodeForm::TwoBits);
        if (stride == 0) {
          continue;
        }
        const at::Tensor codes = some_codes(workers * stride);
        expect_same([&](const Form& form) {
          const at::Tensor wire = form.blank({sum_words(blocks, part, workers)}, at::kInt);
          pack_sums(form.of(codes), workers, blocks, part, wire);
          return std::vector{wire};
        });
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
