#include "linalg/value_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace abtrain::linalg {
namespace {

TEST(ValueSample, HoldsAllOfAFew) {
  EXPECT_TRUE(sample_values({}).index.empty());
  const ValueSample one = sample_values({3.5});
  EXPECT_EQ(one.index, std::vector<std::int64_t>{1});
  EXPECT_EQ(one.value, std::vector<double>{3.5});
  std::vector<double> values(64);
  std::iota(values.rbegin(), values.rend(), 1.0);
  EXPECT_EQ(sample_values(values).value, values);
}

TEST(ValueSample, ThinsOutWhatIsManyAndSmall) {
  for (const std::int64_t n : {65, 100, 511, 2048, 100000}) {
    std::vector<double> values(static_cast<std::size_t>(n));
    std::iota(values.rbegin(), values.rend(), 1.0);
    const ValueSample sample = sample_values(values);
    ASSERT_LE(sample.index.size(), 64u) << n;
    EXPECT_GE(sample.index.size(), 60u) << n;
    EXPECT_EQ(sample.index.front(), 1);
    EXPECT_EQ(sample.index.back(), n);
    std::int64_t gap = 1;
    for (std::size_t i = 1; i < sample.index.size(); ++i) {
      const std::int64_t here = sample.index[i] - sample.index[i - 1];
      EXPECT_GE(here + 1, gap) << n << ", " << i;  // +1: rounded to integers
      gap = std::max(gap, here);
      EXPECT_EQ(sample.value[i], values[static_cast<std::size_t>(sample.index[i] - 1)]);
    }
  }
}

}  // namespace
}  // namespace abtrain::linalg
