#include "data/formats.h"

#include "data/data_files.h"
#include "error_of.h"

namespace abtrain::data {
namespace {

struct Idx {
  Bytes images, labels;
  Extent extent;  // of make_idx
};

Idx make_idx(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  Bytes labels;
  for (std::uint32_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::uint8_t>(i % 10));
  }
  return {
      joined(
          idx_header(0x803, {count, height, width}),
          random_bytes(std::size_t{count} * height * width)),
      joined(idx_header(0x801, {count}), labels),
      {count, height, width}};
}

class IdxFiles : public ::testing::Test {
 protected:
  ByteImages read(const Idx& idx) {
    write_file(images_, idx.images);
    write_file(labels_, idx.labels);
    return read_idx(images_, labels_, 10, idx.extent);
  }
  void expect_damage(const Idx& idx, const std::vector<std::string>& parts) {
    expect_error([&] { read(idx); }, ErrorKind::DamagedData, parts);
  }

  TempFolder folder_;
  std::string images_ = folder_ / "images";
  std::string labels_ = folder_ / "labels";
};

TEST_F(IdxFiles, PlainAndGzippedOfAnySize) {
  // The largest needs many refills of the input buffer.
  for (const std::uint32_t count : {0u, 1u, 3u, 301u}) {
    const Idx plain = make_idx(count, 29, 31);
    const Idx packed = {gzipped(plain.images), gzipped(plain.labels), plain.extent};
    for (const Idx& idx : {plain, packed}) {
      const ByteImages images = read(idx);
      ASSERT_EQ(images.pixels.sizes(), (std::vector<std::int64_t>{std::int64_t{count}, 1, 29, 31}));
      ASSERT_EQ(images.labels.size(0), count);
      const auto* pixels = images.pixels.data_ptr<std::uint8_t>();
      EXPECT_TRUE(std::equal(plain.images.begin() + 16, plain.images.end(), pixels));
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(images.labels.data_ptr<std::int64_t>()[i], i % 10);
      }
    }
  }
}

TEST_F(IdxFiles, WrongMagic) {
  Idx idx = make_idx(2, 3, 3);
  std::swap(idx.images, idx.labels);
  expect_damage(idx, {images_, "expected magic number 0x803", "found 0x801"});
  idx = make_idx(2, 3, 3);
  idx.labels[3] = 9;
  expect_damage(idx, {labels_, "expected magic number 0x801", "found 0x809"});
}

TEST_F(IdxFiles, OtherDimensionsThanExpected) {
  Idx idx = make_idx(2, 3, 5);
  for (const Extent& expected : {Extent{4, 3, 5}, Extent{2, 4, 5}, Extent{2, 3, 4}}) {
    idx.extent = expected;
    expect_damage(idx, {images_, "expected", "found 2 images of 3 x 5"});
  }
}

TEST_F(IdxFiles, HeaderThatClaimsTooMuch) {
  Idx idx = make_idx(2, 3, 3);
  const Bytes header = idx_header(0x803, {0xffffffff, 0xffffffff, 0xffffffff});
  std::copy(header.begin(), header.end(), idx.images.begin());
  for (const Bytes& images : {idx.images, gzipped(idx.images)}) {
    idx.images = images;
    expect_damage(idx, {images_, "expected 2 images of 3 x 3, found 4,294,967,295 images of"});
  }
}

TEST_F(IdxFiles, EndsEarly) {
  const Idx whole = make_idx(3, 4, 4);
  Idx idx = whole;
  idx.images.resize(idx.images.size() - 1);
  expect_damage(idx, {images_, "within the images", "expected 48 bytes", "found 47"});
  idx.images.resize(14);
  expect_damage(idx, {images_, "within the header"});
  idx.images.clear();
  expect_damage(idx, {images_, "within the header"});
  idx = whole;
  idx.labels.pop_back();
  expect_damage(idx, {labels_, "within the labels", "expected 3 bytes", "found 2"});
}

TEST_F(IdxFiles, TrailingBytes) {
  const Idx whole = make_idx(3, 4, 4);
  Idx idx = whole;
  idx.images.push_back(0);
  expect_damage(idx, {images_, "after the last image or label"});
  idx.images = gzipped(idx.images);
  expect_damage(idx, {images_, "after the last image or label"});
  idx.images = gzipped(whole.images);
  idx.images.push_back(0);
  expect_damage(idx, {images_, "after its gzip stream"});
  idx = whole;
  idx.labels.push_back(0);
  expect_damage(idx, {labels_, "after the last image or label"});
}

TEST_F(IdxFiles, TruncatedGzip) {
  // Within the header, the data and the trailer that holds the checksum; the
  // larger one is read in a single piece.
  for (const Idx& whole : {make_idx(3, 9, 9), make_idx(301, 29, 31)}) {
    const Bytes packed = gzipped(whole.images);
    for (const std::size_t kept :
         {std::size_t{2}, std::size_t{9}, packed.size() / 2, packed.size() - 8,
          packed.size() - 1}) {
      Idx idx = whole;
      idx.images.assign(packed.begin(), packed.begin() + kept);
      expect_damage(idx, {images_, "end of the file", "truncated"});
    }
  }
}

TEST_F(IdxFiles, DamagedGzip) {
  Idx idx = make_idx(3, 9, 9);
  idx.images = gzipped(idx.images);
  const Bytes packed = idx.images;
  idx.images[packed.size() - 6] ^= 1;  // the checksum
  expect_damage(idx, {images_, "whole gzip stream", "incorrect data check"});
  idx.images = packed;
  idx.images[10] = 0xff;  // the type of the first block
  expect_damage(idx, {images_, "whole gzip stream", "invalid block type"});
}

TEST_F(IdxFiles, CountsThatDiffer) {
  Idx idx = make_idx(3, 4, 4);
  idx.labels = make_idx(4, 4, 4).labels;
  expect_damage(idx, {labels_, "expected 3 labels", "found 4"});
}

TEST_F(IdxFiles, LabelOutOfRange) {
  Idx idx = make_idx(3, 4, 4);
  idx.labels.back() = 10;
  expect_damage(idx, {labels_, "label of image 2", "expected 0 .. 9", "found 10"});
}

TEST_F(IdxFiles, MissingFolderOrUnreadable) {
  const auto read_here = [&] { read_idx(images_, labels_, 10, {3, 4, 4}); };
  expect_error(read_here, ErrorKind::MissingInput, {images_, "there is no file"});
  std::filesystem::create_directory(images_);
  expect_error(read_here, ErrorKind::DamagedData, {images_, "expected a file, found a folder"});
  std::filesystem::remove(images_);
  // Reading this at 0 fails for everyone, also for root.
  std::filesystem::create_symlink("/proc/self/mem", images_);
  expect_error(read_here, ErrorKind::Io, {images_, "cannot read"});
}

class CifarFiles : public ::testing::Test {
 protected:
  static constexpr std::size_t record = 3073;

  Bytes records(std::size_t count, std::uint32_t stream) {
    Bytes bytes = random_bytes(count * record, stream);
    for (std::size_t i = 0; i < count; ++i) {
      bytes[i * record] = static_cast<std::uint8_t>((i + stream) % 10);
    }
    return bytes;
  }
  void expect_damage(const Bytes& bytes, const std::vector<std::string>& parts) {
    write_file(second_, bytes);
    expect_error([&] { read_cifar({first_, second_}, 65, 10); }, ErrorKind::DamagedData, parts);
  }

  TempFolder folder_;
  std::string first_ = folder_ / "first.bin";
  std::string second_ = folder_ / "second.bin";
};

TEST_F(CifarFiles, RecordsOfAllFilesInOrder) {
  for (const std::size_t count : {0u, 1u, 65u}) {
    write_file(first_, records(count, 1));
    write_file(second_, records(count, 2));
    const ByteImages images = read_cifar({first_, second_}, static_cast<std::int64_t>(count), 10);
    ASSERT_EQ(
        images.pixels.sizes(),
        (std::vector<std::int64_t>{static_cast<std::int64_t>(2 * count), 3, 32, 32}));
    const Bytes all = joined(records(count, 1), records(count, 2));
    const auto* pixels = images.pixels.data_ptr<std::uint8_t>();
    for (std::size_t i = 0; i < 2 * count; ++i) {
      ASSERT_EQ(images.labels.data_ptr<std::int64_t>()[i], all[i * record]);
      ASSERT_TRUE(std::equal(
          pixels + i * (record - 1), pixels + (i + 1) * (record - 1),
          all.begin() + i * record + 1));
    }
  }
}

TEST_F(CifarFiles, Damage) {
  const Bytes whole = records(65, 2);
  write_file(first_, records(65, 1));
  Bytes bytes = whole;
  bytes.pop_back();
  expect_damage(bytes, {second_, "records 64 .. 64 of 65", "expected 3,073", "found 3,072"});
  bytes = whole;
  bytes.push_back(0);
  expect_damage(bytes, {second_, "found more bytes"});
  bytes = whole;
  bytes[64 * record] = 200;
  expect_damage(bytes, {second_, "label of image 64", "0 .. 9", "found 200"});
}

}  // namespace
}  // namespace abtrain::data
