#include "ops/low_rank.h"

#include "op_test.h"

namespace abtrain::ops {
namespace {

struct LowRankShape {
  std::int64_t n, m;
};
constexpr LowRankShape kLowRankShapes[] = {{1, 1}, {7, 13}, {64, 200}};

ABT_OP_TEST(LowRank, IsTheProduct) {
  for (const auto& [rank, shape] : cases({1, 2, 3, 4, 5, 8, 11}, kLowRankShapes)) {
    const auto& [n, m] = shape;
    const at::Tensor p = randn(rank, n, 1), q = randn(rank, m, 2), from = randn(n, m, 3);
    const at::Tensor exact = at::matmul(p.to(at::kDouble).t(), q.to(at::kDouble));
    forms.each([&](const Form& form) {
      // What was there does not matter.
      const at::Tensor out = form.of(at::full({n, m}, NAN)), less = form.of(from);
      low_rank_product(form.of(p), form.of(q), out);
      subtract_low_rank_product(form.of(p), form.of(q), less);
      EXPECT_LT(distance(out.cpu(), exact), 2e-6 * rank);
      EXPECT_LT(distance(less.cpu(), from.to(at::kDouble).sub(exact)), 2e-6 * rank);
    });
  }
}

// A number's place in its row, and so in a vector, changes no bit of it.
TEST(LowRank, HasTheSameBitsAtEveryPlace) {
  const at::Tensor p = randn(6, 10, 1), q = randn(6, 41, 2);
  const at::Tensor whole = at::empty({10, 41});
  low_rank_product(p, q, whole);
  for (std::int64_t j = 0; j < 41; ++j) {
    const at::Tensor column = at::empty({10, 1});
    low_rank_product(p, q.narrow(1, j, 1).contiguous(), column);
    EXPECT_TRUE(column.equal(whole.narrow(1, j, 1))) << j;
  }
}

TEST(LowRank, RefusesWhatDoesNotFit) {
  const at::Tensor out = at::empty({3, 4});
  EXPECT_REFUSED(low_rank_product(randn(2, 3, 1), randn(2, 5, 1), out));
  EXPECT_REFUSED(subtract_low_rank_product(randn(2, 3, 1), randn(1, 4, 1), out));
  EXPECT_REFUSED(low_rank_product(randn(3, 2, 1).t(), randn(2, 4, 1), out));
}

}  // namespace
}  // namespace abtrain::ops
