#include "ops/ternary_codes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>

#include "code_buffers.h"
#include "kernel_test.h"
#include "ops/cpu/simd.h"
#include "ops/magnitudes.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(TernaryCodes) : public KernelTest {};

std::vector<TernaryTable> ternary_tables() {
  std::vector<TernaryTable> tables;
  for (CodeBlocks& blocks : block_sets()) {
    tables.emplace_back(std::move(blocks));
  }
  for (const auto& ends : std::vector<std::vector<std::int64_t>>{
           {1}, {3, 4099, 4104, 4105}, {4099, 4101, 8191, 8222}, {1, 3, 8, 4107, 4108, 13109}}) {
    std::vector<CodeBlocks::Tensor> tensors;
    std::int64_t begin = 0;
    for (const std::int64_t end : ends) {
      tensors.push_back({begin, end - begin});
      begin = end;
    }
    tables.emplace_back(CodeBlocks(tensors), /*packed=*/true);
  }
  return tables;
}

// What is not finite among random codes.
at::Tensor some_codes(std::int64_t bytes) {
  const at::Tensor codes = random_bytes(bytes, 2);
  // The code 1 is rare: without its bit, save in some bytes.
  codes.bitwise_and_(0xAA).bitwise_or_(codes.bitwise_right_shift(1));
  codes[bytes / 2].fill_(0x1B);
  return codes;
}

TEST_F(ABT_KERNEL_SUITE(TernaryCodes), EncodeAsTheCpuToTheBit) {
  for (TernaryTable& table : ternary_tables()) {
    const kernels::TernaryBlocks all = table.on(at::kCPU);
    const std::int64_t tensors = table.blocks().tensors();
    const at::Tensor values = odd_numbers(table.blocks().end(), 3);
    values[values.numel() / 4].fill_(-0.7f);
    const at::Tensor levels = randn(tensors, 8).abs_().add_(0.1);
    levels[0].fill_(NAN);
    std::vector<at::Tensor> cuts;
    for (const float cut : {0.7f, 0.0f, 1e9f, NAN}) {
      cuts.push_back(at::full({tensors}, cut));
    }
    if (all.tensors != nullptr) {
      cuts.emplace_back();  // by chance
    }
    for (const at::Tensor& each : cuts) {
      for (const CodeForm code : {CodeForm::TwoBits, CodeForm::Bytes}) {
        for (const Simd simd : {Simd::Plain, best_simd()}) {
          simd_in_use = simd;
          expect_same([&](const Form& form) {
            const at::Tensor u = form.of(values);
            const at::Tensor wire = form.blank({code_bytes(all.codes, code)}, at::kByte);
            const TernaryRule rule{
                .cuts = each.defined() ? form.of(each) : each,
                .random = kernels::random_stream(5, kernels::RandomPurpose::Rounding, 11, 3),
                .keeps_rest = code == CodeForm::TwoBits};
            encode_ternary(u, table, form.of(levels), rule, code, wire);
            return std::vector{u, wire};
          });
        }
      }
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(TernaryCodes), AddAndAverageAsTheCpuToTheBit) {
  for (TernaryTable& table : ternary_tables()) {
    CodeBlocks& blocks = table.blocks();
    const kernels::TernaryBlocks all = table.on(at::kCPU);
    const at::Tensor levels = randn(blocks.tensors(), 8).abs_();
    for (const int workers : {1, 2, 5, 70, 200}) {
      SCOPED_TRACE(workers);
      const auto expect_same_means = [&](const at::Tensor& in, const auto& average) {
        for (const Simd simd : {Simd::Plain, best_simd()}) {
          simd_in_use = simd;
          expect_same([&](const Form& form) {
            const at::Tensor mean = form.of(at::zeros({blocks.end()}));  // which has gaps
            average(form.of(in), form.of(levels), mean);
            return std::vector{mean};
          });
        }
      };
      const auto expect_same_mean_codes = [&](const at::Tensor& sent, CodeWire wire) {
        expect_same_means(
            sent, [&](const at::Tensor& in, const at::Tensor& each, const at::Tensor& mean) {
              average_codes(in, wire, workers, table, each, mean);
            });
      };
      const at::Tensor codes = some_codes(workers * kernels::packed_bytes(all.codes));
      expect_same_mean_codes(codes, CodeWire::Codes);
      if (all.tensors == nullptr) {
        const CodeBlocks::Range part = blocks.share(2, 1);
        const at::Tensor shards = some_codes(workers * code_bytes(blocks, part, CodeForm::TwoBits));
        expect_same([&](const Form& form) {
          const at::Tensor wire = form.blank({sum_words(blocks, part, workers)}, at::kInt);
          pack_sums(form.of(shards), workers, blocks, part, wire);
          return std::vector{wire};
        });
        // Sums of any bits, those that no codes make among them.
        expect_same_mean_codes(
            random_words(sum_words(blocks, blocks.all(), workers), 5), CodeWire::Planes);
      }
      if (workers <= kernels::kMaxByteWorkers) {
        expect_same_mean_codes(random_bytes(all.codes, 6), CodeWire::Bytes);
      }
      const at::Tensor own = randn(workers, blocks.tensors(), 20).view(at::kByte);
      expect_same_means(
          at::cat({own, codes.view({workers, -1})}, 1).view(-1),
          [&](const at::Tensor& in, const at::Tensor&, const at::Tensor& mean) {
            average_records(in, workers, table, mean);
          });
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
