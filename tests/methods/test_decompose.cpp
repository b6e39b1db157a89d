#include "methods/ab/decompose.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "comm/run_workers.h"

namespace abtrain::methods {
namespace {

// Decays at the layer's own speed.
at::Tensor weight(std::int64_t m, std::int64_t n, double speed, int seed) {
  at::Generator g = at::detail::createCPUGenerator(seed);
  const auto left = std::get<0>(at::linalg_qr(at::randn({m, n}, g)));
  const auto right = std::get<0>(at::linalg_qr(at::randn({n, n}, g)));
  auto scaled = left.clone();
  for (std::int64_t i = 0; i < n; ++i) {
    scaled.select(1, i).mul_(std::exp(-speed * i / n));
  }
  return at::mm(scaled, right.t());
}

struct Layers {
  std::vector<nn::Weight> weights;
  std::vector<AbLayer> dense;     // of each layer
  std::vector<AbLayer> products;  // of each layer, rank 24

  Layers() {
    const struct {
      std::int64_t m, n;
      double speed;
    } shapes[] = {{300, 160, 30}, {200, 200, 14}, {260, 128, 9}, {90, 40, 4}};
    for (int i = 0; i < 4; ++i) {
      const auto& s = shapes[i];
      weights.emplace_back(std::vector<std::int64_t>{s.m, s.n});
      weights.back().set_dense(weight(s.m, s.n, s.speed, i + 1));
    }
    for (auto& w : weights) {
      const std::string layer = "fc" + std::to_string(dense.size());
      const nn::NamedWeight named = {layer + ".weight", layer, &w, {}};
      at::Generator g = at::detail::createCPUGenerator(7);
      dense.emplace_back(named);
      products.emplace_back(named).product = {at::randn({w.m(), 24}, g), at::randn({24, w.n()}, g)};
    }
  }
};

using Choice = std::vector<AbLayer> (*)(const Layers& layers);

std::vector<AbLayer> all_dense(const Layers& layers) {
  return layers.dense;
}

std::vector<AbLayer> decompose(
    int workers, const CutOptions& options, int times = 1, Choice choice = all_dense) {
  std::vector<AbLayer> result;
  std::mutex mutex;
  comm::run_workers(workers, 60, [&](comm::Communicator& world) {
    if (workers > 1) {
      at::set_num_threads(1);
    }
    Layers layers;
    std::optional<device::SideStream> stream;
    std::vector<AbLayer> own = choice(layers);
    for (int i = 0; i < times; ++i) {
      decompose_layers(own, options, world, stream, [](double) {});
    }
    const std::lock_guard lock(mutex);
    if (!result.empty()) {
      for (std::size_t i = 0; i < own.size(); ++i) {
        EXPECT_EQ(own[i].cut.rank, result[i].cut.rank);
        if (own[i].cut.rank > 0) {
          EXPECT_TRUE(own[i].factors.a.equal(result[i].factors.a));
          EXPECT_TRUE(own[i].factors.b.equal(result[i].factors.b));
        }
      }
    }
    result = own;
  });
  return result;
}

// However many workers share the layers, the ranks and factors are the same.
class Sharing : public ::testing::TestWithParam<linalg::RankRule> {};

TEST_P(Sharing, GivesTheSameRanksAndProducts) {
  CutOptions options;
  options.rule = GetParam();
  options.other_parameters = 1000;
  const auto alone = decompose(1, options);
  const auto got = decompose(3, options);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    ASSERT_EQ(got[i].cut.rank, alone[i].cut.rank) << "layer " << i;
    EXPECT_NEAR(got[i].cut.energy, alone[i].cut.energy, 1e-6);
    if (alone[i].cut.rank > 0) {
      const auto difference = at::mm(got[i].factors.a, got[i].factors.b)
                                  .sub(at::mm(alone[i].factors.a, alone[i].factors.b));
      EXPECT_LT(difference.abs().max().item<double>(), 1e-3) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Sharing,
    ::testing::Values(
        linalg::RankRule{linalg::RankRuleName::Sigma, 0.15},
        linalg::RankRule{linalg::RankRuleName::Energy, 0, 0.95},
        linalg::RankRule{linalg::RankRuleName::Fixed, 0, 0, 12},
        linalg::RankRule{linalg::RankRuleName::Ratio, 0, 0, 0, 0, 6},
        linalg::RankRule{linalg::RankRuleName::Budget, 0, 0, 0, 0, 3},
        linalg::RankRule{linalg::RankRuleName::Budget, 0, 0, 0, 0, 8},
        linalg::RankRule{linalg::RankRuleName::Budget, 0, 0, 0, 0, 20}));

// Layers that stayed dense and products share the two gathers, but not their
// bits.
TEST(Decompose, DenseWeightsAndProductsTogetherAsApart) {
  CutOptions options;
  {
    for (const int workers : {1, 3}) {
      SCOPED_TRACE(workers);
      const auto dense = decompose(workers, options, 1, [](const Layers& l) {
        return std::vector<AbLayer>{l.dense[1], l.dense[2]};
      });
      const auto products = decompose(workers, options, 1, [](const Layers& l) {
        return std::vector<AbLayer>{l.products[0], l.products[3]};
      });
      const auto both = decompose(workers, options, 1, [](const Layers& l) {
        return std::vector<AbLayer>{l.products[0], l.dense[1], l.dense[2], l.products[3]};
      });
      const std::vector<AbLayer> expected = {products[0], dense[0], dense[1], products[1]};
      ASSERT_EQ(both.size(), expected.size());
      for (std::size_t i = 0; i < both.size(); ++i) {
        const AbLayer& e = expected[i];
        EXPECT_EQ(both[i].cut.rank, e.cut.rank);
        EXPECT_EQ(both[i].cut.energy, e.cut.energy);
        ASSERT_EQ(both[i].factors.a.defined(), e.factors.a.defined());
        if (e.cut.rank > 0) {
          EXPECT_TRUE(both[i].factors.a.equal(e.factors.a)) << i;
          EXPECT_TRUE(both[i].factors.b.equal(e.factors.b)) << i;
        }
      }
    }
  }
}

// Each cut begins with what the one before it left, as a product or as a dense
// weight: the ranks stay those of the first, however the spectra are found.
TEST(Decompose, EnergyIsMeasuredOnce) {
  // The smallest r with sum_{i<r} exp(-2 speed i / n) >= 0.9 of the sum to n.
  const std::vector<std::int64_t> first = {7, 17, 17, 12};
  CutOptions options;
  options.rule.rule = linalg::RankRuleName::Energy;
  options.rule.keep = 0.9;
  {
    for (const bool remembered : {true, false}) {
      for (const int workers : {1, 3}) {
        comm::run_workers(workers, 60, [&](comm::Communicator& world) {
          if (workers > 1) {
            at::set_num_threads(1);
          }
          Layers layers;
          std::optional<device::SideStream> stream;
          std::vector<AbLayer> sources = layers.dense;
          for (int cut = 0; cut < 6; ++cut) {
            decompose_layers(sources, options, world, stream, [](double) {});
            for (std::size_t i = 0; i < sources.size(); ++i) {
              if (cut == 0 || remembered) {
                EXPECT_EQ(sources[i].cut.rank, first[i]) << cut << ", layer " << i;
              } else {
                EXPECT_LT(sources[i].cut.rank, first[i]) << cut << ", layer " << i;
              }
              ASSERT_GT(sources[i].cut.rank, 0);
              const linalg::LowRankPair pair = sources[i].factors;
              sources[i].cut.first_rank = remembered ? first[i] : 0;
              if (cut % 2 == 0) {
                sources[i].product = pair;
              } else {
                sources[i].product = {};
                layers.weights[i].set_dense(at::mm(pair.a, pair.b));
              }
            }
          }
        });
      }
    }
  }
}

// What dense steps brought elsewhere is kept beyond the first rank, until
// factors save nothing.
TEST(Decompose, EnergyMayRiseAboveTheFirstRank) {
  CutOptions options;
  options.rule.rule = linalg::RankRuleName::Energy;
  options.rule.keep = 0.9;
  const auto least_of_three = [](const Layers& layers) {
    std::vector<AbLayer> sources = layers.dense;
    for (AbLayer& source : sources) {
      source.cut.first_rank = 3;
    }
    return sources;
  };
  const auto got = decompose(3, options, 1, least_of_three);
  const std::vector<std::int64_t> wanted = {7, 17, 17, 12};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(got[i].cut.rank, wanted[i]);
  }
  options.rule.keep = 0.99999999;
  EXPECT_EQ(decompose(3, options, 1, least_of_three)[3].cut.rank, 0);
}

TEST(Decompose, AProductsFactorsGiveItAgain) {
  CutOptions options;
  options.rule.rule = linalg::RankRuleName::Fixed;
  options.rule.rank = 30;  // more than the products have
  const Layers layers;
  const auto got = decompose(3, options, 1, [](const Layers& l) {
    return std::vector<AbLayer>{l.products[0], l.products[2]};
  });
  for (std::size_t i = 0; i < 2; ++i) {
    const linalg::LowRankPair& product = layers.products[2 * i].product;
    ASSERT_EQ(got[i].cut.rank, 24);
    EXPECT_LT(
        at::mm(got[i].factors.a, got[i].factors.b)
            .sub(at::mm(product.a, product.b))
            .abs()
            .max()
            .item<double>(),
        1e-3);
  }
}

TEST(ShareOut, TheMostExpensiveFirstToTheLeastLoaded) {
  EXPECT_EQ(
      share_out({{60, 30, 3}, {100, 50}, {200, 100, 5}, {80, 40}}, 2), (Owned{{1}, {0, 2, 3}}));
  EXPECT_EQ(share_out({{80, 40}}, 3), (Owned{{0}, {}, {}}));
}

}  // namespace
}  // namespace abtrain::methods
