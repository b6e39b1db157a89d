// Which folders of images are which part of the data set, and which classes they hold.
#include "data/images/image_parts.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset.h"
#include "data/image_folder_files.h"
#include "data/images/image_files.h"
#include "error_of.h"
#include "example_kinds.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class Parts : public ::testing::Test {
 protected:
  // Folders of one image each: "train/cat".
  void add(const Names& folders) const {
    for (const std::string& folder : folders) {
      add_jpeg(root_ / (folder + "/1.jpg"), smooth(30, 30, 0));
    }
  }
  // "train, validation, test"
  std::string found() const {
    const ImageParts parts = find_image_parts(root_.path());
    return formatted("{}, {}, {}", parts.train, parts.validation, parts.test);
  }
  Names doubts() const {
    return find_image_parts(root_.path()).doubts;
  }
  std::string refusal(ErrorKind kind, const Names& has) const {
    expect_error([&] { dataset_shape(options_of(root_)); }, kind, has);
    return expect_error([&] { load_dataset(options_of(root_)); }, kind, has);
  }
  const TempFolder root_;
};

TEST_F(Parts, HaveTheUsualNamesInAnyCase) {
  const std::pair<Names, const char*> cases[] = {
      {{"Train", "Val"}, "Train, Val, "},
      {{"TRAIN", "TEST"}, "TRAIN, , TEST"},
      {{"training", "validation"}, "training, validation, "},
      {{"train", "valid", "Testing"}, "train, valid, Testing"},
      {{"train", "dev", "eval"}, "train, dev, eval"},
      {{"Training", "evaluation"}, "Training, , evaluation"},
      {{"train"}, "train, , "},
      {{"trainer", "vals"}, "., , "}};
  for (const auto& [names, wanted] : cases) {
    const TempFolder root;
    for (const std::string& name : names) {
      root.add(name + "/cat/1.jpg", "x");
    }
    const ImageParts parts = find_image_parts(root.path());
    EXPECT_EQ(formatted("{}, {}, {}", parts.train, parts.validation, parts.test), wanted);
    EXPECT_TRUE(parts.doubts.empty()) << wanted;
    EXPECT_EQ(has_training_part(root.path()), parts.train != kRootPart);
  }
}

TEST_F(Parts, OfOneKindAreRefused) {
  add({"train/a", "Train/b", "val/a"});
  refusal(ErrorKind::DamagedData, {"one folder of training images", "Train and train"});
  fs::remove_all(root_ / "Train");
  add({"validation/a"});
  refusal(ErrorKind::DamagedData, {"one folder of validation images", "val and validation"});
  // A link to the same folder is not a second one.
  fs::remove_all(root_ / "validation");
  fs::create_directory_symlink("val", root_ / "valid");
  EXPECT_EQ(found(), "train, val, ");
  add({"test/a", "eval/a"});
  refusal(ErrorKind::DamagedData, {"one folder of test images", "eval and test"});
}

TEST_F(Parts, TestAndValidationImagesOfTheirOwn) {
  add({"train/a", "train/b", "val/a", "val/b", "test/a", "test/b"});
  for (const char* more : {"val/a/2.jpg", "train/a/2.jpg", "train/b/2.jpg"}) {
    add_jpeg(root_ / more, smooth(30, 30, 1));
  }
  DataOptions options = options_of(root_);
  Dataset set = load_dataset(options);
  EXPECT_EQ(as_list(set.test).files->path(0), root_ / "test/a/1.jpg");
  EXPECT_EQ(labels_of(as_list(set.validation).labels), (Indices{0, 0, 1}));
  const Examples own = take_validation(set, 0, 1);
  EXPECT_EQ(as_list(own).files->path(1), root_ / "val/a/2.jpg");
  EXPECT_EQ(set.train.size(), 4);
  expect_has(
      set.account.facts.front(),
      "training images come from train, test images from test; the 3 images of val "
      "serve for validation");
  EXPECT_TRUE(set.account.doubts.empty());
  // The key takes training images instead.
  options.validation = 1;
  set = load_dataset(options);
  EXPECT_EQ(set.validation.size(), 0);
  EXPECT_EQ(take_validation(set, 1, 1).size(), 1);
  EXPECT_EQ(set.train.size(), 3);
  ASSERT_EQ(set.account.doubts.size(), 1U);
  expect_has(set.account.doubts[0], root_ / "val is not read, because data.validation");
}

// ImageNet's test images have no classes.
TEST_F(Parts, ATestFolderWithoutClasses) {
  add({"train/a", "train/b", "test"});
  refusal(
      ErrorKind::DamagedData,
      {root_ / "test: expected a folder for each class", "Move it elsewhere"});
  add({"val/a", "val/b"});
  const Dataset set = load_dataset(options_of(root_));
  EXPECT_EQ(as_list(set.test).files->path(0), root_ / "val/a/1.jpg");
  ASSERT_EQ(set.account.doubts.size(), 1U);
  expect_has(set.account.doubts[0], root_ / "test is not read, since it has no folder for each");
}

TEST_F(Parts, ClassesWithNamesOfParts) {
  add({"bus", "car", "train"});
  add_jpeg(root_ / "bus/2.jpg", smooth(30, 30, 0));  // for the test set
  Dataset set = load_dataset(options_of(root_));
  EXPECT_EQ(set.class_names, (Names{"bus", "car", "train"}));
  ASSERT_EQ(set.account.doubts.size(), 1U);
  expect_has(set.account.doubts[0], "train is read as a class");
  expect_has(set.account.doubts[0], "put all classes into " + root_.path() + "/train");
  EXPECT_FALSE(has_training_part(root_.path()));
  // As the doubt says.
  fs::create_directory(root_ / "all");
  for (const char* name : {"bus", "car", "train"}) {
    fs::rename(root_ / name, root_ / (std::string("all/") + name));
  }
  fs::rename(root_ / "all", root_ / "train");
  set = load_dataset(options_of(root_));
  EXPECT_EQ(set.class_names, (Names{"bus", "car", "train"}));
  EXPECT_TRUE(set.account.doubts.empty());
}

TEST_F(Parts, ImagesWithoutClasses) {
  add({"train", "test"});
  refusal(ErrorKind::DamagedData, {"images of test and train lie in no folder of a class"});
  add({"masks"});
  refusal(ErrorKind::DamagedData, {"images of test and train lie in no folder of a class"});
}

TEST_F(Parts, WithoutTraining) {
  add({"trian/a", "val/a"});
  refusal(
      ErrorKind::MissingInput, {"beside val, found none", "did you mean 'trian'", "ROOT/train"});
  fs::rename(root_ / "trian", root_ / "test");
  refusal(ErrorKind::MissingInput, {"beside test and val"});
  add({"train"});
  refusal(ErrorKind::MissingInput, {"found train without a folder for each class"});
}

TEST_F(Parts, FoldersBesideTheParts) {
  add({"train/a", "train/b", "val/a", "val/b", "c"});
  root_.add("annotations/all.json", "{}");
  const Account account = load_dataset(options_of(root_)).account;
  EXPECT_EQ(account.facts.back(), root_.path() + ": not read: annotations, c");
  ASSERT_EQ(account.doubts.size(), 1U);
  expect_has(account.doubts[0], root_ / "c is not read, since the classes are the folders of");
}

TEST_F(Parts, ScoresOfTrainingImagesAreDoubted) {
  add({"train/a", "train/b"});
  fs::create_directory_symlink("train", root_ / "val");
  ASSERT_EQ(doubts().size(), 1U);
  expect_has(doubts()[0], "val and train are one folder");
}

TEST_F(Parts, ALevelTooHigh) {
  add({"flowers/train/a", "flowers/train/b", "flowers/val/a"});
  refusal(
      ErrorKind::DamagedData, {"only flowers", "train, val", "data.root: " + root_ / "flowers"});
  fs::rename(root_ / "flowers/train", root_ / "images_train");
  fs::create_directories(root_ / "images_val");
  add({"images_val/a", "images_val/b"});
  fs::remove_all(root_ / "flowers");
  const Account account = load_dataset(options_of(root_)).account;
  ASSERT_EQ(account.doubts.size(), 1U);
  expect_has(account.doubts[0], "images_train, images_val are read as classes");
}

TEST_F(Parts, ClassesWithoutImages) {
  add({"train/a", "train/b", "val/a"});
  fs::create_directories(root_ / "val/b");
  fs::create_directories(root_ / "val/notes");
  Dataset set = load_dataset(options_of(root_));
  EXPECT_EQ(labels_of(as_list(set.test).labels), Indices{0});
  EXPECT_EQ(set.classes, 2);
  ASSERT_EQ(set.account.doubts.size(), 1U);
  expect_has(set.account.doubts[0], "no images for 1 of the 2 classes: b");
  // As torchvision's ImageFolder.
  fs::create_directories(root_ / "train/aa");
  refusal(ErrorKind::DamagedData, {root_ / "train", "found none in aa"});
}

TEST_F(Parts, OneClassIsDoubted) {
  add({"train/a", "val/a"});
  expect_has(load_dataset(options_of(root_)).account.doubts.at(0), "a is the only class");
}

// macOS writes the decomposed form. The second name begins with a Hangul syllable.
TEST_F(Parts, NamesInTwoNormalForms) {
  add({"train/caf\u00e9", "train/zoo", "train/\uac00", "val/cafe\u0301", "val/\u1100\u1161"});
  Dataset set = load_dataset(options_of(root_));
  EXPECT_EQ(set.class_names, (Names{"caf\u00e9", "zoo", "\uac00"}));
  EXPECT_EQ(labels_of(as_list(set.test).labels), (Indices{0, 2}));
  add({"train/cafe\u0301"});
  refusal(ErrorKind::DamagedData, {"two named 'caf\u00e9'", "NFD"});
  // Names that are not UTF-8 are what they are.
  fs::remove_all(root_ / "train/cafe\u0301");
  add({"train/x\xff", "val/x\xff"});
  set = load_dataset(options_of(root_));
  EXPECT_EQ(set.classes, 4);
}

TEST_F(Parts, ImagesOfOtherFormatsAreDoubted) {
  add({"train/a", "train/b", "val/a", "val/b"});
  root_.add("train/a/2.bmp", "BM");
  root_.add("train/a/._1.jpg", "x");
  const Account account = load_dataset(options_of(root_)).account;
  ASSERT_EQ(account.doubts.size(), 1U);
  expect_has(account.doubts[0], "1 file was skipped: BMP");
  expect_has(join(account.facts, "\n"), "train/a/2.bmp");
  expect_has(join(account.facts, "\n"), "1 image was skipped, because names that start with a dot");
}

}  // namespace
}  // namespace abtrain::data
