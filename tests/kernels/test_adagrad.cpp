#include "kernels/blocks/adagrad.h"

#include <gtest/gtest.h>

#include <cmath>

#include "code_buffers.h"
#include "ops/team_host.h"

namespace abtrain::kernels {
namespace {

TEST(AdagradKernel, StepsAsTheCpuToTheBit) {
  for (const auto& tensors : tensor_sets()) {
    const ops::CodeBlocks blocks(tensors);
    const std::int64_t numel = blocks.end();
    for (const int kind : {0, 1, 2}) {  // mirror descent, dual from 0, from x
      for (const float sparse : {0.0f, 0.2f}) {
        for (const float steps : {1.0f, 7.0f}) {
          for (const bool divides : {false, true}) {
            at::Tensor state[2][5];
            const at::Tensor l1 = at::full({blocks.tensors()}, sparse);
            const float rate = 0.3f;
            const float divisor = 1.7f;
            for (int i = 0; i < 2; ++i) {
              for (int k = 0; k < 5; ++k) {
                state[i][k] = random_floats(numel, 30 + static_cast<std::uint64_t>(k));
              }
              state[i][2].abs_();
              state[i][0][numel / 2].fill_(-0.0f);
              state[i][1][numel - 1].fill_(NAN);
              state[i][1][numel / 3].fill_(INFINITY);
              const auto pointer = [&](int k) { return state[i][k].mutable_data_ptr<float>(); };
              const AdagradStep job{
                  blocks.host(),
                  blocks.size(),
                  pointer(0),
                  pointer(1),
                  pointer(2),
                  kind > 0 ? pointer(3) : nullptr,
                  kind > 1 ? pointer(4) : nullptr,
                  l1.const_data_ptr<float>(),
                  &rate,
                  &steps,
                  divides ? &divisor : nullptr,
                  1e-3f};
              i == 0 ? work_on_host(job) : static_cast<void>(adagrad_step(job, nullptr));
            }
            for (int k = 0; k < 5; ++k) {
              EXPECT_TRUE(same_bits(state[0][k], state[1][k]))
                  << kind << " " << sparse << " " << steps << " " << k;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::kernels
