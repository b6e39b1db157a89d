#include "ops/pair_signs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace abtrain::ops {
namespace {

at::Tensor random_doubles(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble);
}

// <S, D_j> on the diagonal, <D_j, D_i> below.
at::Tensor triangle_of(const at::Tensor& sum, const at::Tensor& rows) {
  std::vector<float> numbers;
  for (std::int64_t j = 0; j < rows.size(0); ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      numbers.push_back(at::dot(rows[j], i == j ? sum : rows[i]).item<float>());
    }
  }
  return at::tensor(numbers);
}

TEST(PairSigns, AreThoseOfTheRuleRowByRow) {
  for (const int rows : {1, 2, 5, 64, 257}) {
    at::Tensor sum = at::zeros({300}, at::kDouble);
    for (std::uint64_t round = 0; round < 4; ++round) {
      const at::Tensor all = random_doubles({rows, 300}, 10 * round + 1);
      const at::Tensor signs = at::empty({rows}, at::kChar);
      pair_signs(triangle_of(sum, all), signs);
      for (int j = 0; j < rows; ++j) {
        const int sign = at::dot(sum, all[j]).item<double>() <= 0 ? 1 : -1;
        ASSERT_EQ(signs[j].item<int>(), sign) << rows << ", row " << j;
        sum.add_(all[j], sign);
      }
    }
  }
}

TEST(PairSigns, TiesTakePlusAndNaNMinus) {
  const at::Tensor signs = at::empty({2}, at::kChar);
  pair_signs(at::tensor({0., -2., 2.}, at::kFloat), signs);
  EXPECT_EQ(signs[0].item<int>(), 1);
  EXPECT_EQ(signs[1].item<int>(), 1);  // 2 - 2
  pair_signs(at::full({3}, NAN), signs);
  EXPECT_EQ(signs[0].item<int>(), -1);
}

TEST(PairSignsErrors, RefuseWhatDoesNotFit) {
  EXPECT_THROW(pair_signs(at::zeros({2}), at::empty({2}, at::kChar)), std::logic_error);
  EXPECT_THROW(pair_signs(at::zeros({0}), at::empty({0}, at::kChar)), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
