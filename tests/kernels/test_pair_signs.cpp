#include "ops/pair_signs.h"

#include "op_test.h"

namespace abtrain::ops {
namespace {

at::Tensor signs_of(const Forms& forms, const at::Tensor& triangle, std::int64_t rows) {
  return forms.same([&](const Form& form) {
    const at::Tensor signs = form.blank({rows}, at::kChar);
    pair_signs(form.of(triangle), signs);
    return signs;
  });
}

ABT_OP_TEST(PairSigns, AreThoseOfTheRuleRowByRow) {
  for (const auto& [rows] : cases({1L, 2L, 5L, 33L, 64L, forms.large(kMaxPairRows, 257)})) {
    at::Tensor sum = at::zeros({300}, at::kDouble);
    for (std::uint64_t round = 0; round < 4; ++round) {
      const at::Tensor all = randn(rows, 300, 10 * round + 1).to(at::kDouble);
      // <S, D_j> on the diagonal, <D_j, D_i> below.
      const at::Tensor products = at::matmul(all, all.t());
      products.diagonal().copy_(at::matmul(all, sum));
      const at::Tensor below = at::ones({rows, rows}, at::kBool).tril();
      const at::Tensor signs = signs_of(forms, products.masked_select(below).to(at::kFloat), rows);
      for (std::int64_t j = 0; j < rows; ++j) {
        const int sign = number(all[j].dot(sum)) <= 0 ? 1 : -1;
        ASSERT_EQ(signs[j].item<int>(), sign) << "row " << j;
        sum.add_(all[j], sign);
      }
    }
  }
}

ABT_OP_TEST(PairSigns, TiesTakePlusAndNaNMinus) {
  const at::Tensor plus = at::ones({2}, at::kChar);
  EXPECT_TRUE(signs_of(forms, at::tensor({0.f, -2.f, 2.f}), 2).equal(plus));  // 2 - 2
  EXPECT_EQ(number(signs_of(forms, at::full({3}, NAN), 2)[0]), -1);
}

TEST(PairSigns, RefuseWhatDoesNotFit) {
  EXPECT_REFUSED(pair_signs(at::zeros({2}), at::empty({2}, at::kChar)));
  EXPECT_REFUSED(pair_signs(at::zeros({0}), at::empty({0}, at::kChar)));
}

}  // namespace
}  // namespace abtrain::ops
