#include "kernels/codes/sign_codes.h"

#include <gtest/gtest.h>

#include "code_buffers.h"
#include "ops/sign_codes.h"
#include "ops/team_host.h"

namespace abtrain::kernels {
namespace {

std::uint32_t* words(const at::Tensor& tensor) {
  return reinterpret_cast<std::uint32_t*>(tensor.mutable_data_ptr<std::int32_t>());
}

// Zeros of both signs, a NaN and an infinity among normal numbers.
at::Tensor some_floats(std::int64_t numel, bool finite) {
  const at::Tensor x = random_floats(numel, 3);
  for (std::int64_t i = 0; i < numel; i += 5) {
    x[i].fill_(i % 2 == 0 ? 0.0 : -0.0);
  }
  if (!finite) {
    x[numel - 1].fill_(std::numeric_limits<float>::quiet_NaN());
    x[numel / 2].fill_(-std::numeric_limits<float>::infinity());
  }
  return x;
}

// Random bits, none beyond the end of a tensor.
at::Tensor some_alive(const ops::CodeBlocks& blocks) {
  const at::Tensor alive = random_words(blocks.groups(), 4);
  for (std::int64_t b = 0; b < blocks.size(); ++b) {
    const CodeBlock& block = blocks.host()[b];
    if (block.count % kGroup != 0) {
      words(alive)[block.group + block.count / kGroup] &= (1u << block.count % kGroup) - 1;
    }
  }
  return alive;
}

// Random signs and bits of what is alive, with scales of about 1.
at::Tensor some_records(
    const ops::CodeBlocks& blocks, ops::CodeBlocks::Range part, int workers, bool fresh) {
  const std::int64_t stride = ops::sign_words(blocks, part, fresh);
  const at::Tensor in = random_words(workers * stride, 9);
  const at::Tensor scales = random_floats(workers * blocks.size(), 10).abs_().view(at::kInt);
  for (int w = 0; w < workers; ++w) {
    for (std::int64_t b = part.begin; b < part.end; ++b) {
      const ops::CodeBlocks::Range before{part.begin, b};
      in[w * stride + ops::sign_words(blocks, before, fresh)].copy_(scales[w * blocks.size() + b]);
    }
  }
  return in;
}

class SignKernel : public testing::TestWithParam<bool> {};

TEST_P(SignKernel, EncodesAsTheCpuToTheBit) {
  for (const auto& tensors : tensor_sets()) {
    const ops::CodeBlocks blocks(tensors);
    for (const bool finite : {true, false}) {
      const at::Tensor alive = some_alive(blocks);
      at::Tensor u[2];
      at::Tensor wire[2];
      for (int i = 0; i < 2; ++i) {
        u[i] = some_floats(blocks.end(), finite);
        wire[i] = at::full({ops::sign_words(blocks, blocks.all(), GetParam())}, i, at::kInt);
        const EncodeSigns job{blocks.host(), blocks.size(),  u[i].mutable_data_ptr<float>(),
                              words(alive),  words(wire[i]), GetParam()};
        i == 0 ? work_on_host(job) : static_cast<void>(encode_signs(job, nullptr));
      }
      EXPECT_TRUE(same_bits(u[0], u[1]));
      EXPECT_TRUE(same_bits(wire[0], wire[1]));
    }
  }
}

TEST_P(SignKernel, ServesAsTheCpuToTheBit) {
  for (const auto& tensors : tensor_sets()) {
    const ops::CodeBlocks blocks(tensors);
    // The last share of two, whose blocks are not the table's first ones.
    const auto part = blocks.size() > 1 ? blocks.share(2, 1) : blocks.all();
    const std::int64_t stride = ops::sign_words(blocks, part, GetParam());
    for (const int workers : {1, 3}) {
      const at::Tensor alive = some_alive(blocks);
      const at::Tensor in = some_records(blocks, part, workers, GetParam());
      at::Tensor residual[2];
      at::Tensor wire[2];
      for (int i = 0; i < 2; ++i) {
        residual[i] = some_floats(blocks.span(part), true);
        wire[i] = at::full({stride}, i, at::kInt);
        const ServeSigns job{
            blocks.host() + part.begin,
            part.end - part.begin,
            words(in),
            stride,
            workers,
            words(alive) + blocks.groups_before(part.begin),
            residual[i].mutable_data_ptr<float>(),
            words(wire[i]),
            GetParam()};
        i == 0 ? work_on_host(job) : static_cast<void>(serve_signs(job, nullptr));
      }
      EXPECT_TRUE(residual[0].isfinite().all().item<bool>());
      EXPECT_TRUE(same_bits(residual[0], residual[1]));
      EXPECT_TRUE(same_bits(wire[0], wire[1]));
    }
  }
}

TEST_P(SignKernel, DecodesAsTheCpuToTheBit) {
  for (const auto& tensors : tensor_sets()) {
    const ops::CodeBlocks blocks(tensors);
    const at::Tensor wire = random_words(ops::sign_words(blocks, blocks.all(), GetParam()), 6);
    at::Tensor alive[2];
    at::Tensor estimate[2];
    for (int i = 0; i < 2; ++i) {
      alive[i] = some_alive(blocks);
      estimate[i] = at::full({blocks.end()}, 77.0f);
      const DecodeSigns job{blocks.host(),
                            blocks.size(),
                            words(wire),
                            words(alive[i]),
                            estimate[i].mutable_data_ptr<float>(),
                            GetParam()};
      i == 0 ? work_on_host(job) : static_cast<void>(decode_signs(job, nullptr));
    }
    EXPECT_TRUE(same_bits(alive[0], alive[1]));
    EXPECT_TRUE(same_bits(estimate[0], estimate[1]));
  }
}

INSTANTIATE_TEST_SUITE_P(Records, SignKernel, testing::Bool());

}  // namespace
}  // namespace abtrain::kernels
