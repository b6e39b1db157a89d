#include "linalg/parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "linalg/matrices.h"
#include "linalg/svd.h"

namespace abtrain::linalg {
namespace {

TEST(ForEachMatrix, CallsEachOnceDearestFirst) {
  std::vector<std::size_t> order;
  for_each_matrix({1, 3, 2, 3}, 1, [&](std::size_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 3, 2, 0}));
  std::vector<std::atomic<int>> calls(40);
  for_each_matrix(std::vector<double>(40, 1), 3, [&](std::size_t i) { ++calls[i]; });
  for (const auto& count : calls) {
    EXPECT_EQ(count, 1);
  }
  for_each_matrix({}, 2, [](std::size_t) { FAIL(); });
}

TEST(ForEachMatrix, TheFirstErrorComesBack) {
  for (const int threads : {1, 2}) {
    EXPECT_THROW(
        for_each_matrix(
            std::vector<double>(8, 1), threads,
            [](std::size_t) { throw std::runtime_error("bad"); }),
        std::runtime_error);
  }
}

TEST(ForEachMatrix, SameBitsWithAnyNumberOfThreads) {
  std::vector<at::Tensor> weights;
  std::vector<double> costs;
  for (unsigned i = 0; i < 6; ++i) {
    weights.push_back(noise(120 + i, 40 + i, i).to(at::kFloat));
    costs.push_back(decomposition_cost(120 + i, 40 + i));
  }
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  std::vector<LowRankPair> one(6);
  std::vector<LowRankPair> three(6);
  const auto into = [&](std::vector<LowRankPair>& pairs) {
    return
        [&](std::size_t i) { pairs[i] = Decomposition(weights[i], "w").factors(weights[i], 12); };
  };
  for_each_matrix(costs, 1, into(one));
  for_each_matrix(costs, 3, into(three));
  at::set_num_threads(before);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(one[i].a.equal(three[i].a));
    EXPECT_TRUE(one[i].b.equal(three[i].b));
  }
}

TEST(ForEachMatrix, LeavesTheThreadsOfTheCallerAlone) {
  const int before = at::get_num_threads();
  for_each_matrix({1, 1}, 2, [](std::size_t) { EXPECT_EQ(at::get_num_threads(), 1); });
  EXPECT_EQ(at::get_num_threads(), before);
}

}  // namespace
}  // namespace abtrain::linalg
