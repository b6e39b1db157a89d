// What data sets of all kinds say of themselves, for the first lines of a run and for a plan.
#include "data/account.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "data/dataset.h"
#include "data/image_folder_files.h"
#include "data_files.h"

namespace abtrain::data {
namespace {

std::string all_facts(const Account& account) {
  return join(account.facts, "\n");
}

TEST(AccountOfData, TheTaskNamesTheFirstClasses) {
  ExampleShape images{.channels = 1, .height = 28, .width = 28, .classes = 10};
  EXPECT_EQ(task_of(images, {}), "10 classes: 0 .. 9");
  images.classes = 2;
  EXPECT_EQ(task_of(images, {"cat", "d\x1bg"}), "2 classes: cat, d\\x1bg");
  images.classes = 6;
  EXPECT_EQ(task_of(images, {"a", "b", "c", "d", "e", "f"}), "6 classes: a, b, c, d, e, ...");
  images.classes = 1;
  EXPECT_EQ(task_of(images, {}), "1 class: 0");
  images.regression = true;
  EXPECT_EQ(task_of(images, {}), "a regression of 1 target");
  images.classes = 3;
  EXPECT_EQ(task_of(images, {"x", "y", "z"}), "a regression of 3 targets: x, y, z");
}

TEST(AccountOfData, TheTaskOfTokens) {
  ExampleShape tokens{.classes = 50'257, .context = 64};
  EXPECT_EQ(task_of(tokens, {}), "the next token, one of 50,257");
  tokens.sizes = {64};  // of arrays
  tokens.classes = 5;
  EXPECT_EQ(task_of(tokens, {}), "a label for each token: 5 classes: 0 .. 4");
  tokens.token_labels = false;
  EXPECT_EQ(task_of(tokens, {}), "5 classes: 0 .. 4");
}

TEST(AccountOfData, KnownSetsNeedNotBeThere) {
  EXPECT_EQ(
      dataset_shape({.name = "cifar10"}).account.task,
      "10 classes: airplane, automobile, bird, cat, deer, ...");
  EXPECT_EQ(dataset_shape({.name = "cifar100"}).account.task, "100 classes: 0 .. 99");
}

TEST(AccountOfData, FilesOfATextAreNamed) {
  const TempFolder root;
  std::filesystem::create_directory(root / "more");
  write_file(root / "more/b.txt", random_bytes(100));
  write_file(root / "a.txt", random_bytes(100));
  DataOptions options{.name = "text", .root = root.path(), .context = 4};
  options.test_share = 0.5;
  const Dataset set = load_dataset(options);
  EXPECT_EQ(set.account.task, "the next token, one of 256");
  EXPECT_EQ(all_facts(set.account), root.path() + ": 2 files: a.txt, more/b.txt");
  EXPECT_EQ(all_facts(dataset_shape(options).account), all_facts(set.account));
}

TEST(AccountOfData, PartsAndSkippedFilesOfAFolderOfImages) {
  const TempFolder root;
  for (const char* file : {"train/cat/1.jpg", "train/dog/1.jpg", "val/cat/1.jpg"}) {
    add_jpeg(root / file, smooth(30, 30, 0));
  }
  root.add("train/cat/notes.txt", "not an image");
  const Account account = load_dataset(options_of(root)).account;
  EXPECT_EQ(account.task, "2 classes: cat, dog");
  const std::string facts = all_facts(account);
  EXPECT_NE(facts.find("1 file was skipped"), std::string::npos) << facts;
  EXPECT_NE(facts.find("train/cat/notes.txt"), std::string::npos) << facts;
  EXPECT_NE(facts.find("test images from val"), std::string::npos) << facts;
  EXPECT_EQ(all_facts(dataset_shape(options_of(root)).account), facts);
}

}  // namespace
}  // namespace abtrain::data
