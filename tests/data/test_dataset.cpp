#include "data/dataset.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/std.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>

#include "data/data_files.h"
#include "error_of.h"
#include "example_kinds.h"
#include "with_variables.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

// All zeros after the header, and so with holes on the disk.
void write_sparse(const std::string& path, const Bytes& header, int size) {
  write_file(path, header);
  fs::resize_file(path, static_cast<std::uintmax_t>(size));
}

void write_fashion(const std::string& folder) {
  const auto part = [&](const std::string& name, int count) {
    const auto images = static_cast<std::uint32_t>(count);
    write_sparse(
        folder + "/" + name + "-images-idx3-ubyte", idx_header(0x803, {images, 28, 28}),
        16 + count * 784);
    write_sparse(
        folder + "/" + name + "-labels-idx1-ubyte", idx_header(0x801, {images}), 8 + count);
  };
  part("train", 60'000);
  part("t10k", 10'000);
}

// The first label of each file tells it from the others.
void write_cifar(const std::string& folder) {
  for (int i = 1; i <= 6; ++i) {
    const std::string name = i == 6 ? "test_batch.bin" : formatted("data_batch_{}.bin", i);
    write_sparse(folder + "/" + name, {static_cast<std::uint8_t>(i)}, 10'000 * 3073);
  }
}

TEST(Dataset, NamesAndShapes) {
  EXPECT_EQ(
      join(dataset_names(), " "), "fashion-mnist cifar10 cifar100 image-folder gcide text arrays");
  const DatasetShape fashion = dataset_shape({.name = "fashion-mnist"});
  EXPECT_EQ(fashion.channels * fashion.height * fashion.width, 784);
  const DatasetShape cifar = dataset_shape({.name = "cifar10"});
  EXPECT_EQ(cifar.channels * cifar.height * cifar.width, 3072);
  EXPECT_EQ(cifar.train, 50'000);
  expect_error(
      [] { dataset_shape({.name = "cifar-10"}); }, ErrorKind::Config,
      {"expected one of fashion-mnist, cifar10, cifar100, image-folder", "did you mean 'cifar10'"});
}

TEST(Dataset, FashionMnistFromTheUsualFolders) {
  const TempFolder root;
  for (const std::string& folder :
       {root.path(), root / "fashion-mnist", root / "FashionMNIST/raw"}) {
    fs::create_directories(folder);
    write_fashion(folder);
    const Dataset set = load_dataset({.name = "fashion-mnist", .root = root.path()});
    EXPECT_EQ(set.found_in, folder);
    EXPECT_EQ(set.train.size(), 60'000);
    EXPECT_EQ(set.test.size(), 10'000);
    EXPECT_EQ(set.classes, 10);
    EXPECT_EQ(as_bytes(set.test).pixels.sizes(), (std::vector<std::int64_t>{10'000, 1, 28, 28}));
    EXPECT_EQ(find_dataset("fashion-mnist", root.path()).found_in, folder);
    fs::remove(folder + "/train-labels-idx1-ubyte");
  }
}

TEST(Dataset, CifarFromTheFolderAndItsParent) {
  const TempFolder root;
  const std::string folder = root / "cifar-10-batches-bin";
  fs::create_directory(folder);
  write_cifar(folder);
  for (const std::string& given : {root.path(), folder}) {
    const Dataset set = load_dataset({.name = "cifar10", .root = given});
    EXPECT_EQ(set.found_in, folder);
    ASSERT_EQ(set.train.size(), 50'000);
    ASSERT_EQ(set.test.size(), 10'000);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(as_bytes(set.train).labels.data_ptr<std::int64_t>()[i * 10'000], i + 1);
    }
    EXPECT_EQ(as_bytes(set.test).labels.data_ptr<std::int64_t>()[0], 6);
    EXPECT_EQ(set.mean.size(), 3u);
    EXPECT_EQ(set.std.size(), 3u);
  }
  fs::resize_file(folder + "/test_batch.bin", 10'000 * 3073 - 1);
  expect_error(
      [&] { load_dataset({.name = "cifar10", .root = folder}); }, ErrorKind::DamagedData,
      {folder + "/test_batch.bin", "ends within"});
}

// Records of a coarse and a fine label; the fine one counts.
TEST(Dataset, Cifar100TakesTheFineLabels) {
  const TempFolder root;
  const std::string folder = root / "cifar-100-binary";
  fs::create_directory(folder);
  write_sparse(folder + "/train.bin", {7, 99, 200}, 50'000 * 3074);
  write_sparse(folder + "/test.bin", {19, 42, 100}, 10'000 * 3074);
  for (const std::string& given : {root.path(), folder}) {
    const Dataset set = load_dataset({.name = "cifar100", .root = given});
    EXPECT_EQ(set.found_in, folder);
    EXPECT_EQ(set.classes, 100);
    EXPECT_EQ(set.channels, 3);
    EXPECT_EQ(set.width, 32);
    ASSERT_EQ(set.train.size(), 50'000);
    ASSERT_EQ(set.test.size(), 10'000);
    EXPECT_EQ(as_bytes(set.train).labels.data_ptr<std::int64_t>()[0], 99);
    EXPECT_EQ(as_bytes(set.test).labels.data_ptr<std::int64_t>()[0], 42);
    EXPECT_EQ(as_bytes(set.train).pixels.data_ptr<std::uint8_t>()[0], 200);
  }
  write_sparse(folder + "/train.bin", {7, 100}, 50'000 * 3074);
  expect_error(
      [&] { load_dataset({.name = "cifar100", .root = folder}); }, ErrorKind::DamagedData,
      {folder + "/train.bin", "expected 0 .. 99, found 100"});
  fs::resize_file(folder + "/test.bin", 10'000 * 3073);
  write_sparse(folder + "/train.bin", {}, 50'000 * 3074);
  expect_error(
      [&] { load_dataset({.name = "cifar100", .root = folder}); }, ErrorKind::DamagedData,
      {folder + "/test.bin", "ends within"});
}

TEST(Dataset, EachSetSaysHowItMustLie) {
  const TempFolder empty;
  for (const std::string& name : dataset_names()) {
    const DatasetPlace place = find_dataset(name, empty.path());
    EXPECT_NE(place.how_to_get, "");
    EXPECT_NE(place.layout.find("ROOT"), std::string::npos);
    if (name == "text") {
      continue;  // data.root names any file or folder
    }
    expect_error(
        [&] { load_dataset({.name = name, .root = empty.path()}); }, ErrorKind::MissingInput,
        {place.how_to_get, split_text(place.layout, '\n')[0]});
  }
}

TEST(Dataset, PublicLoadInsistsOnTheFullSize) {
  const TempFolder root;
  write_fashion(root.path());
  const std::string images = root / "t10k-images-idx3-ubyte";
  write_sparse(images, idx_header(0x803, {9'999, 28, 28}), 16 + 9'999 * 784);
  expect_error(
      [&] { load_dataset({.name = "fashion-mnist", .root = root.path()}); }, ErrorKind::DamagedData,
      {images, "expected 10,000 images of 28 x 28", "found 9,999 images of 28 x 28"});
  fs::remove(images);
  fs::create_directory(images);
  expect_error(
      [&] { load_dataset({.name = "fashion-mnist", .root = root.path()}); }, ErrorKind::DamagedData,
      {images, "found a folder"});
}

TEST(Dataset, AGivenRootIsTheOnlyPlace) {
  const TempFolder there;
  const TempFolder given;
  write_fashion(there.path());
  const testing::WithVariables variables{{"ABTRAIN_DATA", there.path()}};
  EXPECT_EQ(find_dataset("fashion-mnist").found_in, there.path());
  EXPECT_EQ(find_dataset("fashion-mnist", given.path()).found_in, "");
  write_file(given / "t10k-images-idx3-ubyte.gz", {});
  expect_error(
      [&] { load_dataset({.name = "fashion-mnist", .root = given.path()}); },
      ErrorKind::MissingInput,
      {given.path() + ": lacks train-images-idx3-ubyte, train-labels-idx1-ubyte, "
                      "t10k-labels-idx1-ubyte",
       given / "fashion-mnist: no such folder", "apt install dataset-fashion-mnist",
       "github.com/zalandoresearch/fashion-mnist"});
}

TEST(Dataset, AutoListsEveryPlace) {
  const TempFolder empty;
  const testing::WithVariables variables{{"ABTRAIN_DATA", empty.path()}, {"HOME", empty / "home"}};
  const fs::path before = fs::current_path();
  fs::current_path(empty.path());
  expect_error(
      [] { load_dataset({.name = "cifar10"}); }, ErrorKind::MissingInput,
      {empty.path() + ": lacks data_batch_1.bin", empty / "cifar-10-batches-bin: no such folder",
       "\n  data: no such folder", "\n  data/cifar-10-batches-bin",
       empty / "home/.cache/abtrain/data/cifar-10-batches-bin",
       "https://www.cs.toronto.edu/~kriz/cifar.html"});
  fs::current_path(before);
  EXPECT_EQ(find_dataset("cifar10").how_to_get.find("the binary"), 0u);
}

TEST(Dataset, RealFashionMnistHasItsPublishedFigures) {
  const DatasetPlace place = find_dataset("fashion-mnist");
  if (place.found_in.empty()) {
    EXPECT_NE(place.how_to_get, "");
    return;
  }
  const Dataset set = load_dataset({.name = "fashion-mnist"});
  EXPECT_EQ(set.found_in, place.found_in);
  const at::Tensor pixels = as_bytes(set.train).pixels.to(at::kDouble) / 255;
  EXPECT_NEAR(pixels.mean().item<double>(), set.mean[0], 5e-5);
  EXPECT_NEAR(pixels.std().item<double>(), set.std[0], 5e-5);
  for (const Examples* images : {&set.train, &set.test}) {
    const at::Tensor counts = at::bincount(as_bytes(*images).labels);
    ASSERT_EQ(counts.numel(), 10);
    for (int c = 0; c < 10; ++c) {
      EXPECT_EQ(counts[c].item<std::int64_t>(), images->size() / 10);
    }
  }
  // The first images: an ankle boot (9) in both.
  EXPECT_EQ(as_bytes(set.train).labels[0].item<std::int64_t>(), 9);
  EXPECT_EQ(as_bytes(set.test).labels[0].item<std::int64_t>(), 9);
}

// Of image i all pixels are i + 1, of the first twenty; the label is i % 10.
void write_steps(const std::string& folder, const std::string& part) {
  std::fstream images(folder + "/" + part + "-images-idx3-ubyte");
  std::fstream labels(folder + "/" + part + "-labels-idx1-ubyte");
  images.seekp(16);
  labels.seekp(8);
  for (int i = 0; i < 20; ++i) {
    images << std::string(784, static_cast<char>(i + 1));
    labels.put(static_cast<char>(i % 10));
  }
}

TEST(Dataset, SubsetPoolAndStandardize) {
  const TempFolder root;
  write_fashion(root.path());
  write_steps(root.path(), "train");
  write_steps(root.path(), "t10k");
  DataOptions options{.name = "fashion-mnist", .root = root.path()};
  options.subset = 12;
  Dataset set = load_dataset(options);
  EXPECT_EQ(as_bytes(set.train).pixels.sizes(), (std::vector<std::int64_t>{12, 1, 28, 28}));
  EXPECT_EQ(set.train.size(), 12);
  EXPECT_EQ(as_bytes(set.train).pixels[11].min().item<int>(), 12);
  EXPECT_EQ(as_bytes(set.train).labels[11].item<int>(), 1);
  EXPECT_EQ(set.test.size(), 10'000);

  options.pool = 7;
  options.standardize = true;
  set = load_dataset(options);
  const DatasetShape shape = dataset_shape(options);
  EXPECT_EQ(shape.train, 12);
  EXPECT_EQ(shape.height, 7);
  EXPECT_EQ(shape.width, 7);
  EXPECT_EQ(set.height, 7);
  EXPECT_EQ(set.width, 7);
  EXPECT_EQ(as_floats(set.train).values.sizes(), (std::vector<std::int64_t>{12, 1, 7, 7}));
  EXPECT_EQ(as_floats(set.test).values[19].min().item<float>(), 20 / 255.0F);
  // Of 1 .. 12 the mean is 6.5 and the variance (144 - 1) / 12; not of 1 .. 20.
  EXPECT_NEAR(set.norm.mean.max().item<double>(), 6.5 / 255, 1e-8);
  EXPECT_NEAR(set.norm.std.min().item<double>(), std::sqrt(143.0 / 12) / 255 + 1e-3, 1e-8);
  const Examples held = hold_out(set.train, 4, 1);
  const FloatImages& images = as_floats(held);
  EXPECT_EQ(images.places.size(0), 4);
  EXPECT_EQ(as_floats(set.train).places.size(0), 8);
  for (std::int64_t i = 0; i < 4; ++i) {
    // Pixels i + 1 have the label i % 10.
    EXPECT_EQ(
        std::lround(images.values[images.places[i]].max().item<double>() * 255 - 1) % 10,
        images.labels[i].item<std::int64_t>());
  }
}

TEST(Dataset, RefusesASubsetOrAPoolThatDoesNotFit) {
  for (const auto& wrong : std::vector<std::pair<DataOptions, std::string>>{
           {{.subset = 60'001},
            "data.subset: expected 0 .. 60000, all training "
            "images of fashion-mnist, got 60001"},
           {{.pool = 8},
            "data.pool: expected a divisor of the 28 x 28 pixels of "
            "fashion-mnist, got 8"},
           {{.pool = 56}, "got 56"}}) {
    expect_error([&] { dataset_shape(wrong.first); }, ErrorKind::Config, {wrong.second});
    expect_error([&] { load_dataset(wrong.first); }, ErrorKind::Config, {wrong.second});
  }
}

// Images whose label says which one they were.
Examples numbered(std::int64_t count) {
  ByteImages images = random_images(count, 1, 3, 5);
  std::int64_t* labels = images.labels.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    labels[i] = i;
  }
  return images;
}

TEST(HoldOut, PartsAreDisjointAndCoverAll) {
  const Examples all = numbered(101);
  Examples train = all;
  const Examples held = hold_out(train, 20, 3);
  EXPECT_EQ(train.size(), 81);
  EXPECT_EQ(held.size(), 20);
  std::set<std::int64_t> seen;
  for (const Examples* part : {static_cast<const Examples*>(&train), &held}) {
    for (std::int64_t i = 0; i < part->size(); ++i) {
      const auto index = as_bytes(*part).labels[i].item<std::int64_t>();
      EXPECT_TRUE(seen.insert(index).second);
      EXPECT_TRUE(at::equal(as_bytes(*part).pixels[i], as_bytes(all).pixels[index]));
    }
  }
  EXPECT_EQ(seen.size(), 101u);
}

TEST(HoldOut, DependsOnTheSeedAlone) {
  const auto held = [](std::uint64_t seed) {
    Examples train = numbered(50);
    const Examples part = hold_out(train, 10, seed);
    return as_bytes(part).labels;
  };
  EXPECT_TRUE(at::equal(held(1), held(1)));
  EXPECT_FALSE(at::equal(held(1), held(2)));
}

TEST(HoldOut, NoneAndTooMany) {
  Examples train = numbered(5);
  EXPECT_EQ(hold_out(train, 0, 1).size(), 0);
  EXPECT_EQ(train.size(), 5);
  Examples none = numbered(0);
  EXPECT_EQ(hold_out(none, 0, 1).size(), 0);
  for (const std::int64_t count : {-1, 5, 6}) {
    expect_error(
        [&] { hold_out(train, count, 1); }, ErrorKind::Config,
        {"data.validation", "expected 0 .. 4", formatted("got {}", count)});
  }
}

}  // namespace
}  // namespace abtrain::data
