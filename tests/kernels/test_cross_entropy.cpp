#include "kernels/blocks/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "code_buffers.h"

namespace abtrain::kernels {
namespace {

TEST(CrossEntropyKernel, GivesLossAndGradientAsTheCpuToTheBit) {
  // Rows that need one warp to the largest block, once around the lanes and
  // more; aligned and not.
  for (const std::int64_t length : {1, 10, 16, 250, 300, 4090, 4096, 4097, 9001}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const float smoothing : {0.0f, 0.1f}) {
        for (const std::int64_t counted : {0, 3}) {
          constexpr std::int64_t kRows = 5;
          const at::Tensor logits = random_floats(kRows * length, 1).mul_(5);
          logits[length / 2].fill_(-INFINITY);
          const at::Tensor typed = logits.to(type);
          const at::Tensor labels =
              at::randint(length, {kRows}, at::detail::createCPUGenerator(3), at::kLong);
          labels[0].fill_(length - 1);
          labels[1].fill_(-100);
          labels[2].fill_(length);  // no class
          at::Tensor losses[2], gradients[2];
          for (int i = 0; i < 2; ++i) {
            losses[i] = at::full({kRows}, i, at::kFloat);
            gradients[i] = at::full({kRows * length}, i, typed.options());
            const CrossEntropy job{
                type == at::kFloat ? Element::F32 : Element::BF16,
                kRows,
                length,
                typed.const_data_ptr(),
                labels.const_data_ptr<std::int64_t>(),
                counted > 0 ? &counted : nullptr,
                -100,
                smoothing,
                0.5f,
                losses[i].mutable_data_ptr<float>(),
                gradients[i].mutable_data_ptr()};
            i == 0 ? work_on_host(job) : static_cast<void>(cross_entropy(job, nullptr));
            // CPU and GPU name a NaN of bf16 differently.
            gradients[i].nan_to_num_(-7);
          }
          EXPECT_TRUE(same_bits(losses[0], losses[1])) << length << " " << smoothing;
          EXPECT_TRUE(same_bits(gradients[0], gradients[1])) << length << " " << smoothing;
        }
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::kernels
