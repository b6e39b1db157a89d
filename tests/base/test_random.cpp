#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "base/random.h"

namespace abtrain {
namespace {

using Block = std::array<std::uint32_t, 4>;

Block philox(Block counter, std::array<std::uint32_t, 2> key) {
  kernels::philox(key.data(), counter.data());
  return counter;
}

// The known answers that come with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsDifferInEveryPartOfTheirKey) {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (auto purpose : {RandomPurpose::Initialize, RandomPurpose::Shuffle}) {
      for (std::uint32_t a : {0u, 1u}) {
        for (std::uint32_t b : {0u, 1u}) {
          first.insert(Random(seed, purpose, a, b).next());
        }
      }
    }
  }
  EXPECT_EQ(first.size(), 3u * 2 * 2 * 2);
}

TEST(Random, IsAFunctionOfItsKey) {
  Random one(7, RandomPurpose::Test, 3, 4), two(7, RandomPurpose::Test, 3, 4);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(one.next(), two.next());
  }
}

TEST(Random, CanBeginAtAnyBlockOfFour) {
  Random all(7, RandomPurpose::Test, 3, 4);
  for (std::uint32_t block = 0; block < 20; ++block) {
    Random part = all.from_block(block);
    Random whole(7, RandomPurpose::Test, 3, 4);
    for (std::uint32_t i = 0; i < 4 * block; ++i) {
      whole.next();
    }
    for (int i = 0; i < 6; ++i) {
      ASSERT_EQ(part.next(), whole.next()) << block << " " << i;
    }
  }
}

TEST(Random, BelowIsUniform) {
  Random random(1, RandomPurpose::Test);
  constexpr int kDraws = 60000, kBound = 6;
  std::vector<int> seen(kBound);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint32_t drawn = random.below(kBound);
    ASSERT_LT(drawn, static_cast<std::uint32_t>(kBound));
    ++seen[drawn];
  }
  double chi_squared = 0;
  for (const int count : seen) {
    const double off = count - kDraws / double{kBound};
    chi_squared += off * off / (kDraws / double{kBound});
  }
  // Five degrees of freedom: above 20.5 once in a thousand seeds.
  EXPECT_LT(chi_squared, 20.5);
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, UniformHasTheMomentsOfItsDistribution) {
  Random random(2, RandomPurpose::Test);
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 1.0 / 2, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.005);
}

}  // namespace
}  // namespace abtrain
