#include "kernels/pair_balance.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "code_buffers.h"
#include "ops/pair_balance_backends.h"

namespace abtrain::kernels {
namespace {

TEST(PairBalanceKernel, DecidesAsTheCpuToTheBit) {
  for (const std::int64_t numel : {7, 4099}) {
    for (const int workers : {1, 2}) {
      at::Tensor sum[2];
      at::Tensor signs[2];
      for (int i = 0; i < 2; ++i) {
        sum[i] = random_floats(numel, 1);
        signs[i] = at::zeros({workers}, at::kChar);
        const at::Tensor parts = at::zeros({numel / kBlock + 1});
        for (std::uint64_t pair = 0; pair < 2; ++pair) {
          const at::Tensor rows = random_floats(workers * numel, 2 + pair);
          const PairBalance job{
              sum[i].mutable_data_ptr<float>(),
              rows.const_data_ptr<float>(),
              numel,
              workers,
              parts.mutable_data_ptr<float>(),
              signs[i].mutable_data_ptr<std::int8_t>()};
          i == 0 ? ops::pair_balance_cpu(job)
                 : static_cast<void>(pair_balance(job, nullptr));
        }
      }
      EXPECT_TRUE(same_bits(sum[0], sum[1])) << numel;
      EXPECT_TRUE(same_bits(signs[0], signs[1])) << numel;
    }
  }
}

}  // namespace
}  // namespace abtrain::kernels
