#include "data/images/jpeg.h"

#include <algorithm>
#include <cstdlib>

#include "data/image_folder_files.h"
#include "error_of.h"

namespace abtrain::data {
namespace {

void decode_jpeg(const Bytes& bytes) {
  JpegDecoder decoder;
  decoder.open(bytes);
  decoder.decode(1);
}

void expect_near(const Picture& picture, const Rgb& image, int levels) {
  ASSERT_EQ(picture.width, image.width);
  ASSERT_EQ(picture.height, image.height);
  for (std::int64_t i = 0; i < 3 * image.width * image.height; ++i) {
    ASSERT_NEAR(picture.pixels[i], image.bytes[i], levels) << "byte " << i;
  }
}

TEST(Jpeg, DecodesWhatWasWritten) {
  JpegDecoder decoder;
  for (const auto& [width, height] : {std::pair(64, 48), std::pair(1, 1), std::pair(33, 7)}) {
    const Rgb image = smooth(width, height, 0.3);
    for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
      const Bytes bytes = jpeg_of(image, TJSAMP_444, 98, flags);
      const ImageSize size = decoder.open(bytes);
      EXPECT_EQ(size.width, width);
      EXPECT_EQ(size.height, height);
      expect_near(decoder.decode(1), image, 6);
    }
  }
}

TEST(Jpeg, GrayBecomesThreeEqualChannels) {
  const Rgb image = smooth(20, 20, 1);
  JpegDecoder decoder;
  const Bytes bytes = jpeg_of(image, TJSAMP_GRAY);
  decoder.open(bytes);
  const Picture picture = decoder.decode(1);
  for (std::int64_t i = 0; i < 400; ++i) {
    ASSERT_EQ(picture.pixels[3 * i], picture.pixels[3 * i + 1]);
    ASSERT_EQ(picture.pixels[3 * i], picture.pixels[3 * i + 2]);
  }
}

TEST(Jpeg, SmallerSidesAreRoundedUp) {
  const Bytes bytes = jpeg_of(smooth(65, 31, 1), TJSAMP_444);
  JpegDecoder decoder;
  decoder.open(bytes);
  for (const int divisor : {1, 2, 4, 8}) {
    const Picture picture = decoder.decode(divisor);
    EXPECT_EQ(picture.width, (65 + divisor - 1) / divisor);
    EXPECT_EQ(picture.height, (31 + divisor - 1) / divisor);
  }
}

// Blocks of one color each: half the size has the same colors.
TEST(Jpeg, SmallerIsTheSamePicture) {
  Rgb image(64, 64), small(32, 32);
  for (std::int64_t y = 0; y < 64; ++y) {
    for (std::int64_t x = 0; x < 64; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        const auto value = static_cast<std::uint8_t>(40 + 10 * (x / 16 + y / 16) + 20 * c);
        image.at(y, x, c) = value;
        small.at(y / 2, x / 2, c) = value;
      }
    }
  }
  JpegDecoder decoder;
  const Bytes bytes = jpeg_of(image, TJSAMP_444, 98);
  decoder.open(bytes);
  expect_near(decoder.decode(2), small, 4);
}

// Inks are stored as 255 - ink: light times light.
TEST(Jpeg, FourInks) {
  constexpr int side = 16;
  Bytes inks(4 * side * side);
  for (std::size_t i = 0; i < inks.size(); ++i) {
    constexpr std::uint8_t values[4] = {200, 100, 50, 180};
    inks[i] = values[i % 4];
  }
  const tjhandle handle = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  ASSERT_EQ(
      tjCompress2(handle, inks.data(), side, 0, side, TJPF_CMYK, &out, &size, TJSAMP_444, 98, 0),
      0);
  const Bytes bytes(out, out + size);
  tjFree(out);
  tjDestroy(handle);
  JpegDecoder decoder;
  decoder.open(bytes);
  const Picture picture = decoder.decode(1);
  const double light = 180.0 / 255;
  EXPECT_NEAR(picture.pixels[0], 200 * light, 3);
  EXPECT_NEAR(picture.pixels[1], 100 * light, 3);
  EXPECT_NEAR(picture.pixels[2], 50 * light, 3);
}

void expect_damaged(const Bytes& bytes, const std::string& reason) {
  expect_error([&] { decode_jpeg(bytes); }, ErrorKind::DamagedData, {reason});
}

TEST(Jpeg, DamageHasItsReason) {
  const Bytes whole = jpeg_of(noise(64, 64, 5));
  const auto first = [&](std::size_t count) { return Bytes(whole.begin(), whole.begin() + count); };
  expect_damaged(first(whole.size() / 2), "Premature end of JPEG file");
  expect_damaged(first(whole.size() - 2), "Premature end of JPEG file");
  expect_damaged(random_bytes(1000), "Not a JPEG file");
  expect_damaged(Bytes(1, 0xFF), "");
  // Wherever it is cut, also within or right after the header.
  for (std::size_t count = 1; count < whole.size(); count += 7) {
    expect_damaged(first(count), "");
  }
  expect_damaged({'G', 'I', 'F', '8', '9', 'a', 0, 0}, "Not a JPEG file");
}

TEST(Jpeg, AHeaderThatClaimsTooMuch) {
  Bytes bytes = jpeg_of(smooth(16, 16, 1));
  const Bytes frame = {0xFF, 0xC0};
  const auto at = std::search(bytes.begin(), bytes.end(), frame.begin(), frame.end());
  ASSERT_NE(at, bytes.end());
  std::fill_n(at + 5, 4, std::uint8_t{0xEE});  // height and width
  expect_damaged(bytes, "claims to have 61166 x 61166 pixels");
  // More than the file's bytes can hold.
  std::fill_n(at + 5, 4, std::uint8_t{0x20});
  expect_damaged(bytes, formatted("claims to have 8224 x 8224 pixels in {}", bytes.size()));
}

// Each scan is a pass over all pixels for a few bytes: decoding these would
// take minutes.
TEST(Jpeg, EndlessScansOfAProgressiveFile) {
  const Bytes whole = jpeg_of(smooth(2000, 1500, 1), TJSAMP_444, 50, TJFLAG_PROGRESSIVE);
  const Bytes start = {0xFF, 0xDA};
  const auto last = std::find_end(whole.begin(), whole.end(), start.begin(), start.end());
  ASSERT_NE(last, whole.end());
  const Bytes header(last, last + 10);  // of a scan without any data
  Bytes bytes(whole.begin(), whole.end() - 2);
  for (int scan = 0; scan < 20'000; ++scan) {
    bytes.insert(bytes.end(), header.begin(), header.end());
  }
  bytes.insert(bytes.end(), {0xFF, 0xD9});
  expect_damaged(bytes, "has more than 100 scans of 2000 x 1500 pixels");
  EXPECT_NO_THROW(decode_jpeg(whole));
}

// What an encoder puts before the picture may hold a picture of its own.
TEST(Jpeg, ScansInsideASegmentDoNotCount) {
  Bytes bytes = jpeg_of(smooth(16, 16, 1));
  Bytes segment = {0xFF, 0xE1, 0x01, 0x92};
  for (int i = 0; i < 200; ++i) {
    segment.insert(segment.end(), {0xFF, 0xDA});
  }
  bytes.insert(bytes.begin() + 2, segment.begin(), segment.end());
  EXPECT_NO_THROW(decode_jpeg(bytes));
}

// A decoder that has met damage is as good as new.
TEST(Jpeg, GoesOnAfterDamage) {
  const Rgb image = smooth(40, 30, 0.3);
  const Bytes whole = jpeg_of(image, TJSAMP_444, 98);
  JpegDecoder decoder;
  for (std::size_t count = 1; count < whole.size(); count += 31) {
    const Bytes part(whole.begin(), whole.begin() + count);
    expect_error(
        [&] {
          decoder.open(part);
          decoder.decode(1);
        },
        ErrorKind::DamagedData, {""});
    decoder.open(whole);
    expect_near(decoder.decode(1), image, 6);
  }
}

// As Pillow, which reads such a file: some bytes wrong within, none missing.
TEST(Jpeg, OtherWarningsDoNotCount) {
  Bytes bytes = jpeg_of(noise(64, 64, 6));
  const auto middle = bytes.begin() + bytes.size() / 2;
  bytes.insert(middle, {0xFF, 0xD3});  // a restart marker out of place
  EXPECT_NO_THROW(decode_jpeg(bytes));
}

}  // namespace
}  // namespace abtrain::data
