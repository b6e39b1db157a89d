#include "ops/thin_products.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/zeros.h>

#include "op_test.h"

namespace abtrain::ops {
namespace {

struct ThinShape {
  std::int64_t n, m;
};
constexpr ThinShape kThinShapes[] = {{1, 1}, {7, 13}, {33, 24}, {64, 200}, {100, 31}};
constexpr std::int64_t kRanks[] = {1, 2, 3, 4, 5, 8, 11, 16, 17};

// As parts of larger matrices, and in both orders of the narrow one.
TEST(ThinProducts, AreTheProducts) {
  for (const std::int64_t rank : kRanks) {
    for (const auto& [n, m] : kThinShapes) {
      for (const bool turned : {false, true}) {
        const auto narrow = [&](const at::Tensor& t) {
          return turned ? t.t().contiguous().t() : t;
        };
        const at::Tensor x = randn(n, m + 3, 1).narrow(1, 2, m);
        const at::Tensor w = randn(rank, m, 2), z = randn(n, rank, 3);
        const at::Tensor out = narrow(at::full({n, rank}, NAN));
        thin_product(x, w, out);
        const at::Tensor sums = randn(rank, m + 2, 4).narrow(1, 1, m), before = sums.clone();
        add_thin_sums(narrow(z), x, sums);
        const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
        EXPECT_LT(distance(out, at::matmul(wide(x), wide(w).t())), 1e-6 * static_cast<double>(m));
        EXPECT_LT(
            distance(sums, wide(before) + at::matmul(wide(z).t(), wide(x))),
            1e-6 * static_cast<double>(n + 1));
      }
    }
  }
}

TEST(ThinProducts, HaveTheSameBitsWithAnyNumberOfThreads) {
  const at::Tensor x = randn(1000, 517, 1), w = randn(7, 517, 2), z = randn(1000, 7, 3);
  std::vector<at::Tensor> first;
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const at::Tensor out = at::empty({1000, 7}), sums = at::zeros({7, 517});
    thin_product(x, w, out);
    add_thin_sums(z, x, sums);
    if (first.empty()) {
      first = {out, sums};
    }
    EXPECT_TRUE(at::equal(first[0], out)) << threads;
    EXPECT_TRUE(at::equal(first[1], sums)) << threads;
  }
  at::set_num_threads(before);
}

TEST(ThinProducts, ShowWhatIsNotFiniteBesideZeros) {
  at::Tensor x = randn(9, 40, 1);
  x[4][17] = NAN;
  const at::Tensor out = at::empty({9, 1}), sums = at::zeros({1, 40});
  thin_product(x, at::zeros({1, 40}), out);
  add_thin_sums(at::zeros({9, 1}), x, sums);
  EXPECT_TRUE(at::isnan(out[4]).all().item<bool>());
  EXPECT_TRUE(at::isnan(sums[0][17]).item<bool>());
  EXPECT_EQ(at::isnan(out).sum().item<std::int64_t>(), 1);
  EXPECT_EQ(at::isnan(sums).sum().item<std::int64_t>(), 1);
}

TEST(ThinProducts, RefuseWhatDoesNotFit) {
  const at::Tensor x = randn(5, 6, 1);
  EXPECT_REFUSED(thin_product(x, randn(2, 7, 1), at::empty({5, 2})));
  EXPECT_REFUSED(thin_product(x, randn(2, 6, 1), at::empty({2, 5})));
  EXPECT_REFUSED(add_thin_sums(randn(4, 2, 1), x, at::zeros({2, 6})));
}

}  // namespace
}  // namespace abtrain::ops
