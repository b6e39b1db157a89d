// PNG and WebP beside Pillow, and damaged ones; folders of them.
#include <ATen/ops/equal.h>
#include <png.h>
#include <sys/wait.h>
#include <webp/encode.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "data/augment.h"
#include "data/image_folder_files.h"
#include "data/images/image_decoder.h"
#include "data/images/image_files.h"
#include "error_of.h"
#include "example_kinds.h"
#include "lacks.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

Bytes png_of(const Rgb& image) {
  png_image out{};
  out.version = PNG_IMAGE_VERSION;
  out.width = static_cast<png_uint_32>(image.width);
  out.height = static_cast<png_uint_32>(image.height);
  out.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&out, nullptr, &size, 0, image.bytes.data(), 0, nullptr);
  Bytes bytes(size);
  png_image_write_to_memory(&out, bytes.data(), &size, 0, image.bytes.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

Bytes webp_of(const Rgb& image) {
  std::uint8_t* out = nullptr;
  const std::size_t size = WebPEncodeLosslessRGB(
      image.bytes.data(), static_cast<int>(image.width), static_cast<int>(image.height),
      static_cast<int>(3 * image.width), &out);
  Bytes bytes(out, out + size);
  WebPFree(out);
  return bytes;
}

bool same(const Picture& picture, const std::uint8_t* pixels, const ImageSize& size) {
  return picture.width == size.width && picture.height == size.height &&
         std::memcmp(
             picture.pixels, pixels, static_cast<std::size_t>(3 * size.width * size.height)) == 0;
}

TEST(ImageDecoder, SamePixelsAsPillow) {
  const TempFolder folder;
  const std::string command = formatted(
      "'{}' -W ignore '{}/tests/data/pillow_reference.py' '{}' >'{}' 2>&1", ABTRAIN_PYTHON,
      ABTRAIN_SOURCE_DIR, folder.path(), folder / "reason");
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const std::string said = read_file(folder / "reason");
  if (code == 77 || code == 127) {
    ABT_LACKS("Pillow: " + said);
  }
  ASSERT_EQ(code, 0) << said;
  ImageDecoder decoder;
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".rgb")) {
      continue;
    }
    ++seen;
    const std::string theirs = read_file(path);
    std::uint32_t width = 0, height = 0;
    std::memcpy(&width, theirs.data(), 4);
    std::memcpy(&height, theirs.data() + 4, 4);
    const std::string file = read_file(path.substr(0, path.size() - 4));
    const Bytes bytes(file.begin(), file.end());
    const ImageSize size = decoder.open(bytes);
    EXPECT_FALSE(decoder.can_shrink());
    EXPECT_TRUE(same(
        decoder.decode(1), reinterpret_cast<const std::uint8_t*>(theirs.data()) + 8,
        {width, height}))
        << path;
    EXPECT_EQ(size.width, width);
  }
  EXPECT_GT(seen, 70);
  const std::string file = read_file(folder / "animation.webp");
  const Bytes bytes(file.begin(), file.end());
  expect_error([&] { decoder.open(bytes); }, ErrorKind::DamagedData, {"is an animation"});
}

TEST(ImageDecoder, DamagedFiles) {
  ImageDecoder decoder;
  const auto decoded = [&](const Bytes& bytes) {
    decoder.open(bytes);
    return decoder.decode(1);
  };
  const Rgb image = noise(40, 30, 1);
  for (const Bytes& whole : {png_of(image), webp_of(image), jpeg_of(image)}) {
    decoded(whole);
    for (const std::size_t kept :
         {whole.size() / 2, std::size_t{40}, std::size_t{20}, std::size_t{12}}) {
      SCOPED_TRACE(
          formatted("{} of {} bytes of {}", kept, whole.size(), static_cast<char>(whole[1])));
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept));
      expect_error([&] { decoded(part); }, ErrorKind::DamagedData);
    }
    // A sound file after a damaged one.
    EXPECT_EQ(decoded(whole).height, 30);
  }
  Bytes png = png_of(image);
  EXPECT_TRUE(same(decoded(png), image.bytes.data(), {40, 30}));
  png[17] = 0x0F;  // its width
  expect_error([&] { decoder.open(png); }, ErrorKind::DamagedData, {"claims to have 983080 x 30"});
  png[16] = 0xFF;
  expect_error(
      [&] { decoder.open(png); }, ErrorKind::DamagedData, {"claims to have 4279173160 x 30"});
  Bytes flipped = png_of(image);
  flipped[flipped.size() / 2] ^= 1;
  expect_error([&] { decoded(flipped); }, ErrorKind::DamagedData, {"damaged PNG: "});
}

// A message names the format that the first bytes are of.
TEST(ImageDecoder, FormatsThatAreNotRead) {
  ImageDecoder decoder;
  const auto refusal = [&](const std::string& text) {
    const Bytes bytes(text.begin(), text.end());
    return expect_error([&] { decoder.open(bytes); }, ErrorKind::DamagedData);
  };
  EXPECT_EQ(refusal("no image"), "is neither JPEG, PNG nor WebP");
  EXPECT_EQ(refusal("GIF89a.."), "is neither JPEG, PNG nor WebP, but a GIF");
  EXPECT_EQ(refusal("BM......"), "is neither JPEG, PNG nor WebP, but a BMP");
  expect_has(refusal(std::string("II*\0....", 8)), "but a TIFF");
  expect_has(
      refusal(std::string(
          "\0\0\0\x1c"
          "ftypavif....",
          16)),
      "but an AVIF");
  expect_has(
      refusal(std::string(
          "\0\0\0\x18"
          "ftypheic....",
          16)),
      "but a HEIC");
  expect_has(refusal("<!DOCTYPE html><html>404"), "a web page");
  expect_has(refusal("version https://git-lfs.github.com/spec/v1\n"), "git lfs pull");
  // Their own marks are cut off or damaged.
  for (const std::size_t kept : {1, 3, 6, 8, 20}) {
    EXPECT_EQ(
        refusal(std::string(
            "\x89PNG\r\n\x1a\n"
            "IHDRIHDRIHDR",
            kept)),
        "Premature end of PNG file");
  }
  expect_has(refusal("\x89PNG\n\x1a\n and more"), "is a PNG whose first bytes are damaged");
  expect_has(refusal("RIFF...."), "Premature end of WebP file");
  expect_has(refusal("\xff"), "JPEG");
}

// Whatever the names say, and in one batch with JPEG files.
TEST(ImageFormats, InFolders) {
  const TempFolder root;
  add_image_folder(root, 2, 3, 1);
  const Rgb image = smooth(60, 44, 0.7);
  write_file(root / "train/c1/0.jpg", png_of(image));
  write_file(root / "train/c1/1.jpg", webp_of(image));
  write_file(root / "train/c1/3.PNG", png_of(image));
  write_file(root / "train/c1/4.webp", webp_of(image));
  const DataOptions options = options_of(root, AugmentName::CropFlip);
  const Dataset set = load_dataset(options);
  EXPECT_EQ(set.train.size(), 8);
  EXPECT_EQ(set.class_names, (std::vector<std::string>{"c0", "c1"}));
  const Augment augment(options, set, 1);
  augment.training(set.train, first(8), 0);
  EXPECT_EQ(as_list(set.train).files->damaged(), 0);
  const at::Tensor centers = augment.evaluation(set.train, 3, 8).inputs;
  for (const int i : {1, 3, 4}) {
    EXPECT_TRUE(at::equal(centers[i], centers[0])) << i;
  }
}

TEST(ImageFormats, ATestSetOfAnotherName) {
  for (const char* name : {"test", "valid"}) {
    const TempFolder root;
    add_image_folder(root, 2, 3, 2);
    fs::rename(root / "val", root / name);
    const Dataset set = load_dataset(options_of(root));
    EXPECT_EQ(set.train.size(), 6);
    EXPECT_EQ(set.test.size(), 4);
    fs::rename(root / "train", root / "trian");
    expect_error(
        [&] { load_dataset(options_of(root)); }, ErrorKind::MissingInput,
        {"expected a folder of training images", "did you mean 'trian'"});
  }
}

TEST(ImageFormats, WithoutATestPart) {
  const TempFolder with_train;
  const TempFolder flat;
  add_image_folder(with_train, 3, 10, 0);
  for (const char* c : {"c0", "c1", "c2"}) {
    fs::copy(with_train / (std::string("train/") + c), flat / c);
  }
  add_jpeg(flat / "alone/1.jpg", smooth(30, 30, 1));
  fs::create_directories(flat / "c1/deeper");
  fs::rename(flat / "c1/9.jpg", flat / "c1/deeper/9.jpg");
  DataOptions options = options_of(with_train);
  options.test_share = 0.2;
  const Dataset set = load_dataset(options);
  EXPECT_EQ(labels_of(as_list(set.train).labels).size(), 24U);
  EXPECT_EQ(labels_of(as_list(set.test).labels), (Indices{0, 0, 1, 1, 2, 2}));
  std::set<std::int64_t> all;
  for (const Examples* part : {&set.train, &set.test}) {
    for (const std::int64_t place : labels_of(as_list(*part).places)) {
      EXPECT_TRUE(all.insert(place).second);
    }
  }
  EXPECT_EQ(all.size(), 30U);

  options.root = flat.path();
  const Dataset own = load_dataset(options);
  EXPECT_EQ(own.class_names, (std::vector<std::string>{"alone", "c0", "c1", "c2"}));
  EXPECT_EQ(own.train.size(), 25);  // the only image of a class is for training
  EXPECT_EQ(labels_of(as_list(own.test).labels), (Indices{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(as_list(own.train).files->path(0), flat / "alone/1.jpg");
  EXPECT_EQ(Augment(options, own, 1).evaluation(own.test, 0, 6).labels.size(0), 6);
  const DatasetShape shape = dataset_shape(options);
  EXPECT_EQ(shape.test, 6);
}

}  // namespace
}  // namespace abtrain::data
