#include "kernels/orders/pair_signs.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "code_buffers.h"

namespace abtrain::kernels {
namespace {

TEST(PairSignsKernel, DecidesAsTheCpu) {
  for (const int rows : {1, 2, 37}) {
    const at::Tensor triangle = random_floats(rows * (rows + 1) / 2, 1);
    at::Tensor signs[2];
    for (int i = 0; i < 2; ++i) {
      signs[i] = at::zeros({rows}, at::kChar);
      const PairSigns job{
          triangle.const_data_ptr<float>(), rows, signs[i].mutable_data_ptr<std::int8_t>()};
      i == 0 ? work_on_host(job) : static_cast<void>(pair_signs(job, nullptr));
    }
    EXPECT_TRUE(same_bits(signs[0], signs[1])) << rows;
  }
}

}  // namespace
}  // namespace abtrain::kernels
