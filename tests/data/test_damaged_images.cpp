// Damaged files of image-folder: stood in for, left out, counted, too many.
#include <ATen/ops/equal.h>

#include <algorithm>

#include "data/augment.h"
#include "data/image_folder_files.h"
#include "data/images/image_files.h"
#include "error_of.h"
#include "example_kinds.h"
#include "said_log.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

// Takes the last tenth of a file away.
void cut(const std::string& path) {
  fs::resize_file(path, fs::file_size(path) * 9 / 10);
}

class Damaged : public ::testing::Test {
 protected:
  Damaged() {
    add_image_folder(root_, 3, 4, 4);
    options_.max_damaged = 0.5;
  }
  const TempFolder root_;
  DataOptions options_ = options_of(root_, AugmentName::CropFlip);
};

TEST_F(Damaged, ATrainingImageGivesWayToTheNext) {
  const Dataset whole = load_dataset(options_);
  const Augment before(options_, whole, 1);
  cut(root_ / "train/c0/3.jpg");            // 3
  root_.add("train/c1/0.jpg", "no image");  // 4
  root_.add("train/c2/3.jpg", "");          // 11, the last
  for (const std::int64_t threads : {1, 4}) {
    options_.decode_threads = threads;
    const Dataset set = load_dataset(options_);
    const Augment augment(options_, set, 1);
    const Batch batch = augment.training(set.train, first(12), 2);
    EXPECT_EQ(labels_of(batch.labels), (Indices{0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 0}));
    const Batch sound = before.training(whole.train, first(12), 2);
    for (const int i : {0, 1, 2, 5, 6, 7, 8, 9, 10}) {
      EXPECT_TRUE(at::equal(batch.inputs[i], sound.inputs[i])) << i;
    }
    EXPECT_EQ(as_list(set.train).files->damaged(), 3);
    EXPECT_EQ(as_list(set.test).files->damaged(), 0);
    EXPECT_TRUE(at::equal(augment.training(set.train, first(12), 2).inputs, batch.inputs));
    EXPECT_EQ(as_list(set.train).files->damaged(), 3);
  }
}

TEST_F(Damaged, AStandInHasItsOwnRandomNumbersOfThePlace) {
  // Both show the same picture, so only the random numbers tell them apart.
  fs::copy_file(
      root_ / "train/c0/1.jpg", root_ / "train/c0/0.jpg", fs::copy_options::overwrite_existing);
  const Dataset whole = load_dataset(options_);
  const at::Tensor sound =
      Augment(options_, whole, 1).training(whole.train, Indices{0, 1}, 0).inputs;
  cut(root_ / "train/c0/0.jpg");
  const Dataset set = load_dataset(options_);
  const at::Tensor now = Augment(options_, set, 1).training(set.train, Indices{0, 1}, 0).inputs;
  EXPECT_TRUE(at::equal(now, sound));
}

TEST_F(Damaged, AnEvaluationLeavesItOut) {
  cut(root_ / "val/c0/4.jpg");
  fs::remove(root_ / "val/c1/7.jpg");
  DataOptions options = options_;
  options.decode_threads = 3;
  const Dataset set = load_dataset(options);  // lists c1/7.jpg no more
  EXPECT_EQ(set.test.size(), 11);
  fs::remove(root_ / "val/c2/5.jpg");
  const Augment augment(options, set, 1);
  const Batch batch = augment.evaluation(set.test, 0, 11);
  EXPECT_EQ(labels_of(batch.labels), (Indices{0, 0, 0, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(batch.inputs.size(0), 9);
  EXPECT_TRUE(batch.inputs.is_contiguous(at::MemoryFormat::ChannelsLast));
  const at::Tensor last = augment.evaluation(set.test, 10, 11).inputs;
  EXPECT_TRUE(at::equal(batch.inputs[8], last[0]));
  EXPECT_EQ(augment.evaluation(set.test, 0, 1).labels.size(0), 0);
  EXPECT_EQ(
      as_list(set.test).files->damaged_paths(),
      (std::vector<std::string>{root_ / "val/c0/4.jpg", root_ / "val/c2/5.jpg"}));
}

TEST_F(Damaged, TooManyEndTheRun) {
  for (const int i : {0, 1, 2}) {
    cut(root_ / formatted("train/c{}/{}.jpg", i, i));
  }
  const auto train = [&](double share) {
    options_.max_damaged = share;
    const Dataset set = load_dataset(options_);
    Augment(options_, set, 1).training(set.train, first(12), 0);
    return as_list(set.train).files->allowed();
  };
  EXPECT_EQ(train(0.25), 3);
  expect_error(
      [&] { train(0.2); }, ErrorKind::DamagedData,
      {"data.max_damaged: 0.2 allows 2 of the 12 training images",
       "found 3:", root_ / "train/c0/0.jpg: Premature end of JPEG file",
       root_ / "train/c1/1.jpg: ", root_ / "train/c2/2.jpg: "});
  expect_error([&] { train(0.001); }, ErrorKind::DamagedData, {"allows 1", "found 2"});
  expect_error([&] { train(0); }, ErrorKind::DamagedData, {"allows 0", "found 1"});
}

TEST_F(Damaged, AllThatWereFoundAreNamed) {
  for (int i = 0; i < 30; ++i) {
    root_.add(formatted("train/c0/bad{:02}.png", i), "no image");
  }
  options_.max_damaged = 0.6;  // 25 of 42
  const Dataset set = load_dataset(options_);
  expect_error(
      [&] { Augment(options_, set, 1).training(set.train, first(42), 0); }, ErrorKind::DamagedData,
      {"found 26:", "bad00.png: is neither JPEG, PNG nor WebP", "bad19.png: ", "and 6 more"});
}

TEST_F(Damaged, AllOfThem) {
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "train")) {
    if (entry.is_regular_file()) {
      cut(entry.path().string());
    }
  }
  options_.max_damaged = 1;
  const Dataset set = load_dataset(options_);
  expect_error(
      [&] { Augment(options_, set, 1).training(set.train, first(2), 0); }, ErrorKind::DamagedData,
      {"all 12 training images are damaged"});
}

TEST_F(Damaged, EachIsToldOnce) {
  cut(root_ / "train/c1/2.jpg");
  SaidLog said;
  {
    const Dataset set = load_dataset(options_, &said.log());
    const Augment augment(options_, set, 1);
    augment.training(set.train, first(12), 0);
    augment.training(set.train, first(12), 1);
  }
  const std::string text = said.text();
  const std::string wanted = root_ / "train/c1/2.jpg: Premature end of JPEG file; skipped";
  const std::size_t at = text.find(wanted);
  EXPECT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find(wanted, at + 1), std::string::npos) << text;
}

}  // namespace
}  // namespace abtrain::data
