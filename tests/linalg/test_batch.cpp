#include "linalg/batch.h"

#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "device/devices.h"
#include "error_of.h"
#include "linalg/gram.h"
#include "linalg/matrices.h"
#include "linalg/product.h"

namespace abtrain::linalg {
namespace {

at::Tensor decaying(std::int64_t m, std::int64_t n, unsigned seed) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    values.push_back(std::exp(-12.0 * i / n));
  }
  return with_spectrum(m, values, seed).to(at::kFloat);
}

std::vector<NamedMatrix> layers() {
  return {
      {decaying(300, 128, 1), "a", {}},
      {noise(90, 64, 2).to(at::kFloat), "b", {}},
      {decaying(128, 128, 3), "c", {}},
      {noise(64, 64, 4).to(at::kFloat), "d", {}}};
}

TEST(Batch, ExactIsTheSameToTheBitAsOneByOne) {
  const auto all = layers();
  const auto got = decompose_all(all, {RankRule{}, SvdRoute::Auto, 2});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Decomposition one(all[i].matrix, "one");
    EXPECT_TRUE(got[i].is_whole());
    EXPECT_EQ(got[i].singular_values(), one.singular_values());
    EXPECT_TRUE(got[i].right(9).equal(one.right(9)));
    EXPECT_FALSE(got[i].next_start().defined());
  }
}

TEST(Batch, RouteDecidesWhatIsPartial) {
  const auto all = layers();
  const auto got = decompose_all(all, {RankRule{}, SvdRoute::Randomized, 1});
  EXPECT_FALSE(got[0].is_whole());
  EXPECT_GT(got[0].searched(), 0);
  EXPECT_TRUE(got[1].is_whole());  // flat: the search gives up
  // Without a rule all values are wanted.
  for (const auto& d : decompose_all(all, {std::nullopt, SvdRoute::Randomized, 1})) {
    EXPECT_TRUE(d.is_whole());
  }
  // As many values as the layer's first cut kept, without being asked again.
  RankRule energy{.rule = RankRuleName::Energy, .keep = 0.5};
  auto kept = all;
  kept[0].least_rank = energy.least = 30;
  const auto of_kept = decompose_all(
      kept, {RankRule{.rule = RankRuleName::Energy, .keep = 0.5}, SvdRoute::Randomized, 1});
  EXPECT_FALSE(of_kept[0].is_whole());
  EXPECT_TRUE(choose_rank(energy, of_kept[0].spectrum(300)).decided);
  EXPECT_TRUE(may_be_partial(SvdRoute::Auto, kLargeSide));
  EXPECT_FALSE(may_be_partial(SvdRoute::Auto, kLargeSide - 1));
  EXPECT_FALSE(may_be_partial(SvdRoute::Exact, kLargeSide));
}

TEST(Batch, PartialHasTheSameBitsEveryTimeAndItsStartIsOneOfItsBlocks) {
  const RankRule rule;
  const auto w = decaying(400, 192, 5);
  const auto first = Decomposition::partial(w, "layer", rule, {});
  const auto second = Decomposition::partial(w, "layer", rule, {});
  ASSERT_FALSE(first.is_whole());
  EXPECT_EQ(first.singular_values(), second.singular_values());
  const auto rank = std::ssize(first.singular_values());
  EXPECT_TRUE(first.right(rank).equal(second.right(rank)));
  const auto start = first.next_start();
  EXPECT_TRUE(start.equal(second.next_start()));
  EXPECT_EQ(start.scalar_type(), at::kFloat);
  EXPECT_EQ(start.size(1), 192);

  // After a small change of the weights.
  const auto changed = w.add(noise(400, 192, 9).to(at::kFloat), 1e-4);
  const auto warm = Decomposition::partial(changed, "layer", rule, start);
  const auto cold = Decomposition::partial(changed, "layer", rule, {});
  ASSERT_FALSE(warm.is_whole());
  EXPECT_LE(warm.searched(), cold.searched());
  ASSERT_EQ(warm.singular_values().size(), cold.singular_values().size());
  for (std::size_t i = 0; i < warm.singular_values().size(); ++i) {
    EXPECT_NEAR(warm.singular_values()[i], cold.singular_values()[i], 2e-7);
  }
}

TEST(Batch, GrowsToMoreValues) {
  const auto w = decaying(400, 192, 5);
  RankRule rule;
  rule.rule = RankRuleName::Fixed;
  rule.rank = 6;
  auto d = Decomposition::partial(w, "layer", rule, {});
  ASSERT_EQ(d.singular_values().size(), 6u);
  d.grow(20, 400);
  ASSERT_EQ(d.singular_values().size(), 20u);
  const auto exact = gesdd(w).s;
  for (std::int64_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(d.singular_values()[i], exact[i].item<double>(), 2e-7);
  }
  EXPECT_NEAR(d.spectrum(400).rest_energy, exact.slice(0, 20).square().sum().item<double>(), 1e-6);
  d.grow(120, 400);  // beyond half of the short side
  EXPECT_TRUE(d.is_whole());
  EXPECT_EQ(d.spectrum(400).rest_energy, 0);
  EXPECT_EQ(d.spectrum(400).rest_bound, 0);
  // A rank of 100 saves nothing here, but is what was asked for.
  auto square = Decomposition::partial(decaying(192, 192, 5), "layer", rule, {});
  ASSERT_FALSE(square.is_whole());
  square.grow(100, 192);
  EXPECT_GE(square.singular_values().size(), 95u);
}

// Where squares would over- or underflow.
TEST(Batch, ThePartialRouteIsOfAnyScale) {
  const auto w = decaying(400, 192, 5).to(at::kDouble);
  const auto plain = Decomposition::partial(w, "layer", {}, {});
  ASSERT_FALSE(plain.is_whole());
  const Spectrum wanted = plain.spectrum(400);
  for (const double scale : {1e-110, 1e110}) {
    const Spectrum got = Decomposition::partial(w.mul(scale), "layer", {}, {}).spectrum(400);
    ASSERT_EQ(got.singular_values.size(), wanted.singular_values.size());
    for (std::size_t i = 0; i < got.singular_values.size(); ++i) {
      EXPECT_NEAR(got.singular_values[i] / scale, wanted.singular_values[i], 2e-7);
    }
    EXPECT_NEAR(got.rest_energy / scale / scale, wanted.rest_energy, 1e-6);
    EXPECT_NEAR(got.rest_bound / scale, wanted.rest_bound, 1e-6);
  }
}

TEST(Batch, NotFiniteNamesTheLayer) {
  for (const auto route : {SvdRoute::Exact, SvdRoute::Randomized}) {
    auto all = layers();
    all[2].matrix = all[2].matrix.clone();
    all[2].matrix[5][7] = NAN;
    expect_error([&] { decompose_all(all, {RankRule{}, route, 1}); }, ErrorKind::Diverged, {"'c'"});
  }
}

TEST(Batch, WholeGramIsTheProduct) {
  for (const std::int64_t n : {1, 63, 64, 65, 200, 600}) {
    const auto w = noise(n + 11, n, 6);
    const auto gram = whole_gram_of(w.to(at::kFloat), "w").matrix;
    const auto x = w.to(at::kFloat).to(at::kDouble);
    EXPECT_LT(largest_difference(gram, at::mm(x.t(), x)), 1e-10);
  }
  const auto tall = noise(9000, 70, 6);
  EXPECT_LT(largest_difference(whole_gram_of(tall, "w").matrix, at::mm(tall.t(), tall)), 1e-8);
}

class GpuSvd : public testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_devices().empty()) {
      GTEST_SKIP() << "no CUDA device here";
    }
  }
  const at::Device gpu_{at::kCUDA, 0};
};

TEST_F(GpuSvd, DriversAgreeWithLapack) {
  for (const std::int64_t n : {1, 7, 64, 200}) {
    const auto w = noise(n + 30, n, 3);
    const auto exact = gesdd(w);
    const double first = exact.s[0].item<double>();
    const auto got = gesdd(w.to(gpu_));
    EXPECT_LT(largest_difference(got.s.cpu(), exact.s), 1e-10 * first);
    const auto product = at::mm(got.u.mul(got.s), got.v.t()).cpu();
    EXPECT_LT(largest_difference(product, w), 1e-10 * first);
    const auto gram = at::mm(w.t(), w);
    const auto [values, vectors] = eigh(gram.to(gpu_), "w");
    const auto v = vectors.cpu();
    EXPECT_LT(distance_from_orthonormal(v), 1e-11);
    EXPECT_LT(largest_difference(at::mm(v.mul(values.cpu()), v.t()), gram), 1e-11 * first * first);
  }
}

TEST_F(GpuSvd, BatchAgreesWithTheCpu) {
  for (const auto route : {SvdRoute::Exact, SvdRoute::Auto, SvdRoute::Randomized}) {
    auto all = layers();
    auto there = all;
    for (auto& layer : there) {
      layer.matrix = layer.matrix.to(gpu_);
    }
    for (int turn = 0; turn < 2; ++turn) {
      const auto got = decompose_all(there, {RankRule{}, route, 1});
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto exact = gesdd(all[i].matrix);
        const auto& values = got[i].singular_values();
        for (std::size_t k = 0; k < values.size(); ++k) {
          EXPECT_NEAR(
              values[k], exact.s[static_cast<std::int64_t>(k)].item<double>(),
              2e-7 * exact.s[0].item<double>());
        }
        const auto rank = std::ssize(values);
        const auto pair = got[i].factors(there[i].matrix, rank);
        const auto best = at::mm(
            exact.u.slice(1, 0, rank).mul(exact.s.slice(0, 0, rank)),
            exact.v.slice(1, 0, rank).t());
        EXPECT_LT(largest_difference(at::mm(pair.a, pair.b).cpu(), best), 1e-4);
      }
    }
  }
}

TEST_F(GpuSvd, NotFiniteNamesTheLayer) {
  auto all = layers();
  for (auto& layer : all) {
    layer.matrix = layer.matrix.to(gpu_);
  }
  all[2].matrix[5][7] = INFINITY;
  EXPECT_THROW(decompose_all(all, {RankRule{}, SvdRoute::Auto, 1}), Error);
}

TEST_F(GpuSvd, ProductsThatAreNotFiniteNameTheLayer) {
  const at::Tensor good = noise(9, 3).to(at::kFloat).to(gpu_);
  const at::Tensor bad = good.div(0.0);
  expect_error([&] { product_svd(bad, good.t(), "fc2"); }, ErrorKind::Diverged, {"'fc2'"});
}

TEST_F(GpuSvd, ProductsAgreeWithTheCpu) {
  for (unsigned i = 0; i < 3; ++i) {
    const std::int64_t k = i < 2 ? 12 : 5;
    const auto p = noise(80, k, i).to(at::kFloat);
    const auto q = noise(k, 60, i + 9).to(at::kFloat);
    const auto cpu = product_svd(p, q, "a").singular_values;
    const auto gpu = product_svd(p.to(gpu_), q.to(gpu_), "a").singular_values;
    EXPECT_LT(largest_difference(gpu.cpu(), cpu), 1e-9 * cpu[0].item<double>());
  }
}

}  // namespace
}  // namespace abtrain::linalg
