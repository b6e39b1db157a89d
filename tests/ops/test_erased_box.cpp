#include "ops/erased_box.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "base/random.h"
#include "kernels/images/erased_box.h"

namespace abtrain::ops {
namespace {

// Within one unit in the last place of the longer type's value.
TEST(Exponential, IsRightToTheLastPlace) {
  double worst = 0;
  for (int i = -70'000; i <= 70'000; ++i) {
    const double x = 0.01 * i + 1e-9 * (i % 97);
    const double got = kernels::exponential(x);
    const double unit = std::nextafter(got, std::numeric_limits<double>::infinity()) - got;
    const auto error = static_cast<double>(std::abs(std::exp(static_cast<long double>(x)) - got));
    worst = std::max(worst, error / unit);
  }
  EXPECT_LT(worst, 1);
  EXPECT_EQ(kernels::exponential(0.0), 1);
}

// The same by the C library's functions, whose last bits may differ: the boxes
// of so many streams do not.
Box by_the_library(Random& random, std::int64_t height, std::int64_t width) {
  const auto between = [&](double low, double high) {
    return low + (high - low) * random.uniform();
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(height * width) * between(0.02, 0.33);
    const double ratio = std::exp(between(std::log(0.3), std::log(3.3)));
    const std::int64_t h = std::lrint(std::sqrt(area * ratio));
    const std::int64_t w = std::lrint(std::sqrt(area / ratio));
    if (h < height && w < width) {
      const std::int64_t top = random.below(static_cast<std::uint32_t>(height - h + 1));
      const std::int64_t left = random.below(static_cast<std::uint32_t>(width - w + 1));
      return {top, left, h, w};
    }
  }
  return {};
}

TEST(ErasedBox, IsTheLibrarysOfTheSameNumbers) {
  const auto numbers = [](const Box& b) { return std::tuple(b.top, b.left, b.height, b.width); };
  for (const auto& [height, width] : {std::pair(32, 32), std::pair(28, 28), std::pair(3, 90)}) {
    for (std::uint32_t i = 0; i < 30'000; ++i) {
      Random ours(1, RandomPurpose::Test, 5, i), theirs = ours;
      const Box got = kernels::draw_erased_box(ours, height, width);
      ASSERT_EQ(numbers(got), numbers(by_the_library(theirs, height, width))) << i;
      ASSERT_EQ(ours.next(), theirs.next()) << "after " << i;
    }
  }
}

TEST(ErasedBox, IsEmptyWhereNoneFits) {
  Random random(1, RandomPurpose::Test);
  const Box box = kernels::draw_erased_box(random, 1, 1);
  // A box of no rows fits even there.
  EXPECT_EQ(box.height * box.width, 0);
}

}  // namespace
}  // namespace abtrain::ops
