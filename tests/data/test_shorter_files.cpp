// Data sets whose files become shorter while they are read: no batch has made-up zeros.
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "array_files.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data_files.h"
#include "error_of.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

// Expects that nothing which looks at the training examples succeeds once the file has lost its
// end.
void expect_found(const DataOptions& options, const std::string& path) {
  const Dataset set = load_dataset(options);
  const Augment augment(options, set, 1);
  const Indices all = first(set.train.size());
  augment.training(set.train, all, 0);
  fs::resize_file(path, 4096);
  for (int repeat = 0; repeat < 2; ++repeat) {
    expect_error([&] { augment.training(set.train, all, 0); }, ErrorKind::Io, {path});
    expect_error(
        [&] { augment.evaluation(set.train, 0, set.train.size()); }, ErrorKind::Io, {path});
    const auto order = make_sequential({set.train.size(), 0, 1, 1});
    Loader loader(set.train, augment, *order, set.train.size(), 1, 0, at::kCPU, at::kFloat);
    Batch batch;
    expect_error([&] { loader.next(batch); }, ErrorKind::Io, {path});
  }
}

void write_arrays(const std::string& path, const at::Tensor& x, const at::Tensor& y) {
  const std::string file = arrays_file(x, y);
  write_file(path, Bytes(file.begin(), file.end()));
}

class ShorterArrays : public ::testing::Test {
 protected:
  void expect_found_in(const at::Tensor& x, const at::Tensor& y) const {
    write_arrays(path_, x, y);
    expect_found({.name = "arrays", .root = folder_.path()}, path_);
  }
  const TempFolder folder_;
  const std::string path_ = folder_ / "train.safetensors";
};

TEST_F(ShorterArrays, OfNumbers) {
  expect_found_in(at::rand({4000, 20}), at::arange(4000, at::kLong).remainder(3));
}

TEST_F(ShorterArrays, OfTargets) {
  expect_found_in(at::rand({4000, 20}), at::rand({4000, 2}));
}

TEST_F(ShorterArrays, OfBytes) {
  const at::Tensor bytes = at::randint(0, 256, {1000, 1, 16, 16}, at::kByte);
  const at::Tensor labels = at::arange(1000, at::kLong).remainder(3);
  // Without a part for tests, the bytes are copied.
  write_arrays(folder_ / "test.safetensors", bytes, labels);
  expect_found_in(bytes, labels);
}

TEST_F(ShorterArrays, OfTokens) {
  const at::Tensor tokens = at::randint(0, 50, {2000, 16}, at::kLong);
  expect_found_in(tokens, tokens);
}

TEST(ShorterTexts, OfBytes) {
  const TempFolder folder;
  write_file(folder / "text", random_bytes(300'000));
  expect_found({.name = "text", .root = folder / "text", .context = 64}, folder / "text");
}

}  // namespace
}  // namespace abtrain::data
