#include "ops/level_codes.h"

#include <cmath>

#include "code_buffers.h"
#include "kernel_test.h"
#include "ops/cpu/simd.h"
#include "ops/magnitudes.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(LevelCodes) : public KernelTest {};

constexpr CodeForm kCodeForms[] = {CodeForm::TwoBits, CodeForm::Bytes};

std::vector<LevelTable> level_tables() {
  return {
      LevelTable({1}), LevelTable({3, 4096, 5, 1}), LevelTable({4099, 2, 4090, 31}),
      LevelTable({1, 2, 5, 4099, 1, 9001, 30})};
}

TEST_F(ABT_KERNEL_SUITE(LevelCodes), EncodeAboveACutAsTheCpuToTheBit) {
  for (LevelTable& table : level_tables()) {
    const at::Tensor levels = randn(table.tensors(), 8);
    levels[0].fill_(NAN);
    for (const float cut : {0.6f, 0.0f, 1e9f, NAN}) {
      SCOPED_TRACE(cut);
      for (const CodeForm code : kCodeForms) {
        for (const bool leaves_rest : {false, true}) {
          for (const Simd simd : {Simd::Plain, best_simd()}) {
            simd_in_use = simd;
            expect_same([&](const Form& form) {
              const at::Tensor u = form.of(odd_numbers(table.numel(), 3));
              const at::Tensor codes = form.blank({code_bytes(table, code)}, at::kByte);
              encode_above(
                  u, table, form.of(at::full({table.tensors()}, cut)), code, codes,
                  leaves_rest ? form.of(levels) : at::Tensor());
              return std::vector{codes, u};
            });
          }
        }
      }
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(LevelCodes), EncodeByChanceAsTheCpuToTheBit) {
  for (LevelTable& table : level_tables()) {
    const at::Tensor random = randn(table.tensors(), 8).abs_().add_(0.1);
    random[0].fill_(NAN);
    for (const CodeForm code : kCodeForms) {
      expect_same([&](const Form& form) {
        const at::Tensor u = form.of(odd_numbers(table.numel(), 3));
        const at::Tensor largest = form.blank({table.tensors()});
        magnitudes(u, table.blocks(), Statistic::Largest, largest);
        std::vector results{largest};
        for (const at::Tensor& levels : {form.of(random), largest}) {
          results.push_back(form.blank({code_bytes(table, code)}, at::kByte));
          encode_by_chance(
              u, table, levels, {.seed = 5, .step = 11, .stream = 3}, code, results.back());
        }
        return results;
      });
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(LevelCodes), AverageAsTheCpuToTheBit) {
  for (LevelTable& table : level_tables()) {
    const std::int64_t bytes = table.record_bytes();
    for (const int workers : {1, 3, 4}) {
      SCOPED_TRACE(workers);
      const at::Tensor in = random_bytes(workers * bytes, 2).view({workers, bytes});
      in.narrow(1, 0, 4 * table.tensors())
          .copy_(randn(workers, table.tensors(), 20).view(at::kByte));
      for (const Simd simd : {Simd::Plain, best_simd()}) {
        simd_in_use = simd;
        expect_same([&](const Form& form) {
          const at::Tensor mean = form.blank({table.numel()});
          average_levels(form.of(in).view(-1), workers, table, mean);
          return std::vector{mean};
        });
      }
      const at::Tensor sums = random_bytes(table.numel(), 4).remainder_(2 * workers + 1);
      expect_same([&](const Form& form) {
        const at::Tensor mean = form.blank({table.numel()});
        average_byte_levels(
            form.of(sums), workers, table, form.of(randn(table.tensors(), 9)), mean);
        return std::vector{mean};
      });
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
