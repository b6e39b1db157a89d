#include "data/images/resample.h"

#include <algorithm>
#include <cmath>

#include "data/image_folder_files.h"

namespace abtrain::data {
namespace {

using Floats = std::vector<float>;

constexpr float kOne[3] = {1, 1, 1};
constexpr float kZero[3] = {0, 0, 0};

Axis whole(std::int64_t pixels, std::int64_t size) {
  return {0, static_cast<double>(pixels), size, 0, size};
}

Floats resampled(const Rgb& image, const Axis& x, const Axis& y, bool mirrored = false) {
  Floats out(static_cast<std::size_t>(3 * x.count * y.count));
  Resampler().run(image.picture(), x, y, mirrored, kOne, kZero, out.data());
  return out;
}

// The weight of source pixel k in output pixel i: the triangle filter written
// down directly, in double, over the pixels within low .. high.
double weight(const Axis& axis, std::int64_t i, std::int64_t k) {
  const double scale = (axis.high - axis.low) / static_cast<double>(axis.size);
  const double width = std::max(1.0, scale);
  const double center = axis.low + (static_cast<double>(i) + 0.5) * scale;
  const auto triangle = [&](std::int64_t at) {
    const double d = std::abs(static_cast<double>(at) + 0.5 - center) / width;
    return std::max(0.0, 1 - d);
  };
  double sum = 0;
  for (auto at = static_cast<std::int64_t>(std::floor(axis.low));
       at < static_cast<std::int64_t>(std::ceil(axis.high)); ++at) {
    sum += triangle(at);
  }
  return triangle(k) / sum;
}

// Without any rounding between the two directions.
double reference(
    const Rgb& image, const Axis& x, const Axis& y, std::int64_t row, std::int64_t column,
    std::int64_t c) {
  double sum = 0;
  for (auto v = static_cast<std::int64_t>(std::floor(y.low));
       v < static_cast<std::int64_t>(std::ceil(y.high)); ++v) {
    const double by = weight(y, y.first + row, v);
    if (by == 0) {
      continue;
    }
    for (auto u = static_cast<std::int64_t>(std::floor(x.low));
         u < static_cast<std::int64_t>(std::ceil(x.high)); ++u) {
      sum += by * weight(x, x.first + column, u) * image.at(v, u, c);
    }
  }
  return sum;
}

struct ResampleCase {
  std::int64_t width, height;
  Axis x, y;
};

class ResampleTo : public ::testing::TestWithParam<ResampleCase> {};

TEST_P(ResampleTo, IsTheTriangleFilter) {
  const auto& [width, height, x, y] = GetParam();
  const Rgb image = noise(width, height, 3);
  const Floats out = resampled(image, x, y);
  double worst = 0, sum = 0;
  for (std::int64_t row = 0; row < y.count; ++row) {
    for (std::int64_t column = 0; column < x.count; ++column) {
      for (std::int64_t c = 0; c < 3; ++c) {
        const double value = out[3 * (row * x.count + column) + c];
        ASSERT_EQ(value, std::round(value));
        const double gap = value - reference(image, x, y, row, column, c);
        worst = std::max(worst, std::abs(gap));
        sum += gap;
      }
    }
  }
  // Half a level by each of the two roundings, in no direction.
  EXPECT_LE(worst, 1.001);
  EXPECT_LT(std::abs(sum) / static_cast<double>(out.size()), 0.1);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ResampleTo,
    ::testing::Values(
        ResampleCase{32, 32, whole(32, 56), whole(32, 56)},
        ResampleCase{40, 31, whole(40, 24), whole(31, 24)},
        ResampleCase{70, 9, whole(70, 8), whole(9, 21)},
        ResampleCase{200, 150, whole(200, 8), whole(150, 8)},
        ResampleCase{1, 1, whole(1, 5), whole(1, 3)}, ResampleCase{5, 3, whole(5, 1), whole(3, 1)},
        // A window of the output, and a part of the source.
        ResampleCase{40, 31, {0, 40, 50, 7, 20}, {0, 31, 37, 9, 11}},
        ResampleCase{40, 31, {11, 32, 16, 0, 16}, {4, 29, 16, 0, 16}},
        // Edges between pixels, as after decoding at half the size.
        ResampleCase{40, 31, {10.5, 32.25, 16, 0, 16}, {4.5, 29.5, 12, 0, 12}}));

TEST(Resample, TheSameSizeIsTheSameImage) {
  const Rgb image = noise(21, 17, 1);
  const Floats out = resampled(image, whole(21, 21), whole(17, 17));
  EXPECT_TRUE(std::equal(out.begin(), out.end(), image.bytes.begin()));
}

TEST(Resample, MirroredIsReadBackwards) {
  const Rgb image = noise(30, 12, 2);
  for (const std::int64_t size : {13, 14, 45}) {
    const Axis x = whole(30, size), y = whole(12, 9);
    const Floats plain = resampled(image, x, y);
    const Floats mirrored = resampled(image, x, y, true);
    for (std::int64_t row = 0; row < 9; ++row) {
      for (std::int64_t i = 0; i < size; ++i) {
        for (std::int64_t c = 0; c < 3; ++c) {
          ASSERT_EQ(mirrored[3 * (row * size + i) + c], plain[3 * (row * size + size - 1 - i) + c]);
        }
      }
    }
  }
}

// What lies around the part that is taken never shows.
TEST(Resample, NothingBleedsIn) {
  Rgb image(40, 30);
  std::fill(image.bytes.begin(), image.bytes.end(), 255);
  for (std::int64_t y = 5; y < 25; ++y) {
    for (std::int64_t x = 8; x < 30; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        image.at(y, x, c) = 0;
      }
    }
  }
  for (const std::int64_t size : {3, 16, 64}) {
    for (const float value : resampled(image, {8, 30, size, 0, size}, {5, 25, size, 0, size})) {
      ASSERT_EQ(value, 0) << size;
    }
  }
}

TEST(Resample, WhiteStaysWhite) {
  Rgb image(301, 299);
  std::fill(image.bytes.begin(), image.bytes.end(), 255);
  for (const std::int64_t size : {7, 64, 299, 500}) {
    for (const float value : resampled(image, whole(301, size), whole(299, size))) {
      ASSERT_EQ(value, 255) << size;
    }
  }
}

TEST(Resample, ScalesAndShiftsEachChannel) {
  const Rgb image = noise(9, 9, 4);
  const float scale[3] = {0.5F, 2, -1}, shift[3] = {1, -3, 0.25F};
  for (const std::int64_t size : {4, 9, 20}) {
    const Floats plain = resampled(image, whole(9, size), whole(9, size));
    Floats out(plain.size());
    Resampler().run(
        image.picture(), whole(9, size), whole(9, size), false, scale, shift, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], plain[i] * scale[i % 3] + shift[i % 3]);
    }
  }
}

}  // namespace
}  // namespace abtrain::data
