#include "kernels/random.h"

#include <gtest/gtest.h>

#include <array>

#include "base/random.h"

namespace abtrain::kernels {
namespace {

// The known answers of tests/base pin base/random.h; this pins the copy to it.
TEST(KernelRandom, HasTheWordsOfTheHosts) {
  for (const std::uint64_t seed : {0ull, 1ull, 0x123456789abcdefull, ~0ull}) {
    for (const auto purpose : {RandomPurpose::Shuffle, RandomPurpose::Augment}) {
      for (const std::uint32_t a : {0u, 7u, ~0u}) {
        for (const std::uint32_t b : {0u, 49999u, ~0u}) {
          abtrain::Random host(seed, purpose, a, b);
          Random copy(seed, static_cast<std::uint32_t>(purpose), a, b);
          for (int i = 0; i < 25; ++i) {
            ASSERT_EQ(copy.next(), host.next());
          }
          ASSERT_EQ(copy.below(9), host.below(9));
          ASSERT_EQ(copy.uniform(), host.uniform());
          ASSERT_EQ(copy.coin(), host.coin());
        }
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::kernels
