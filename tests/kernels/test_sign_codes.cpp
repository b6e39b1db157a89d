#include "ops/sign_codes.h"

#include <cmath>

#include "code_buffers.h"
#include "kernel_test.h"

namespace abtrain::ops {
namespace {

class ABT_KERNEL_SUITE(SignCodes) : public KernelTest {};

// Zeros of both signs among normal numbers.
at::Tensor with_zeros(std::int64_t numel) {
  const at::Tensor x = randn(numel, 3);
  x.slice(0, 0, numel, 10).zero_();
  x.slice(0, 5, numel, 10).fill_(-0.0f);
  return x;
}

// Random bits, none beyond the end of a tensor, and bits that are also there.
std::vector<at::Tensor> sets_of_alive(const CodeBlocks& blocks) {
  const at::Tensor random = random_words(blocks.groups(), 4);
  for (std::int64_t b = 0; b < blocks.size(); ++b) {
    const kernels::CodeBlock& block = blocks.host()[b];
    if (const std::int64_t rest = block.count % kernels::kGroup) {
      random[block.group + block.count / kernels::kGroup].bitwise_and_((1LL << rest) - 1);
    }
  }
  return {random, at::full({blocks.groups()}, 0x5A5A0FF0, at::kInt)};
}

// Random signs and bits of what is alive, with scales of about 1.
at::Tensor random_records(
    const CodeBlocks& blocks, CodeBlocks::Range part, int workers, bool fresh) {
  const std::int64_t stride = sign_words(blocks, part, fresh);
  const at::Tensor in = random_words(workers * stride, 9);
  const at::Tensor scales = randn(workers, blocks.size(), 10).abs_().view(at::kInt);
  for (int w = 0; w < workers; ++w) {
    for (std::int64_t b = part.begin; b < part.end; ++b) {
      in[w * stride + sign_words(blocks, {part.begin, b}, fresh)].copy_(scales[w][b]);
    }
  }
  return in;
}

TEST_F(ABT_KERNEL_SUITE(SignCodes), EncodeAsTheCpuToTheBit) {
  for (CodeBlocks& blocks : block_sets()) {
    const at::Tensor finite = with_zeros(blocks.end());
    const at::Tensor infinite = finite.clone();
    infinite[blocks.end() - 1].fill_(NAN);
    infinite[blocks.end() / 2].fill_(-INFINITY);
    for (const bool fresh : {false, true}) {
      for (const at::Tensor& known : sets_of_alive(blocks)) {
        for (const at::Tensor& values : {finite, infinite}) {
          expect_same([&](const Form& form) {
            const at::Tensor u = form.of(values);
            const at::Tensor alive = form.of(known);
            const at::Tensor wire = form.blank({sign_words(blocks, blocks.all(), fresh)}, at::kInt);
            encode_signs(u, blocks, alive, wire, fresh);
            // With scales that are not finite: as floats, of which any NaN may stand for another.
            return std::vector{u, alive, values.is_same(finite) ? wire : wire.view(at::kFloat)};
          });
        }
      }
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(SignCodes), ServeAsTheCpuToTheBit) {
  for (CodeBlocks& blocks : block_sets()) {
    for (const bool fresh : {false, true}) {
      // The last share of two: its blocks are not the table's first ones.
      for (const auto part : {blocks.all(), blocks.share(2, 1)}) {
        const at::Tensor before = with_zeros(blocks.span(part));
        for (const int workers : {1, 2, 3}) {
          const at::Tensor in = random_records(blocks, part, workers, fresh);
          for (const at::Tensor& known : sets_of_alive(blocks)) {
            expect_same([&](const Form& form) {
              const at::Tensor residual = form.of(before);
              const at::Tensor alive = form.of(known);
              const at::Tensor wire = form.blank({sign_words(blocks, part, fresh)}, at::kInt);
              serve_signs(form.of(in), workers, blocks, part, alive, residual, wire, fresh);
              EXPECT_TRUE(residual.isfinite().all().item<bool>());
              return std::vector{residual, alive, wire};
            });
          }
        }
      }
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(SignCodes), DecodeAsTheCpuToTheBit) {
  for (CodeBlocks& blocks : block_sets()) {
    for (const bool fresh : {false, true}) {
      const at::Tensor wire = random_words(sign_words(blocks, blocks.all(), fresh), 6);
      for (const at::Tensor& known : sets_of_alive(blocks)) {
        expect_same([&](const Form& form) {
          const at::Tensor alive = form.of(known);
          const at::Tensor estimate = form.of(at::full({blocks.end()}, 77.0f));  // it has gaps
          decode_signs(form.of(wire), blocks, alive, estimate, fresh);
          return std::vector{alive, estimate};
        });
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::ops
