#include "data/images/image_listing.h"

#include <filesystem>

#include "data/image_folder_files.h"
#include "error_of.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class ListingOf : public ::testing::Test {
 protected:
  ListingOf() {
    for (const char* file : {"train/b/2.jpg", "train/b/1.JPEG", "train/a/x.jpeg", "val/a/v.jpg"}) {
      root_.add(file, "x");
    }
  }
  // Paths of all images of the part `train`, in their order.
  Names images() const {
    Names out;
    for (const ListedFolder& folder : list_images(root_.path(), "train")) {
      const Names names = lines_of(folder.images);
      EXPECT_EQ(folder.image_count, std::ssize(names));
      for (const std::string& name : names) {
        out.push_back(folder.path + "/" + name);
      }
    }
    return out;
  }
  const TempFolder root_;
  const Names all_ = {"train/a/x.jpeg", "train/b/1.JPEG", "train/b/2.jpg"};
};

// A listing that was kept from an earlier start would miss a change within a tick of the clock, and
// that of a folder which was copied with its times.
TEST_F(ListingOf, IsWhatLiesThereNow) {
  EXPECT_EQ(images(), all_);
  const auto time = fs::last_write_time(root_ / "train/b");
  fs::rename(root_ / "train/b/1.JPEG", root_ / "train/b/3.jpg");
  fs::last_write_time(root_ / "train/b", time);
  EXPECT_EQ(images(), (Names{"train/a/x.jpeg", "train/b/2.jpg", "train/b/3.jpg"}));
  EXPECT_FALSE(fs::exists(root_ / ".abtrain-index"));
}

TEST_F(ListingOf, WhatCountsAsAnImage) {
  root_.add("train/a/notes.txt", "x");
  root_.add("train/a/jpg", "x");
  root_.add("train/a/old.BMP", "x");
  root_.add("train/a/.hidden.jpg", "x");
  root_.add("train/a/.DS_Store", "x");
  root_.add("train/a/new\nline.jpg", "x");
  root_.add("train/beside.jpg", "x");
  root_.add("train/.git/1.jpg", "x");
  fs::create_directory(root_ / "train/a/folder.jpg");
  Names with = all_;
  with.insert(with.begin(), "train/beside.jpg");
  EXPECT_EQ(images(), with);
  const ListedFolder a = list_images_in(root_.path(), "train/a");
  EXPECT_EQ(a.others, 4);
  EXPECT_EQ(a.some_others, "jpg\nnotes.txt\nold.BMP\n");
  EXPECT_EQ(a.other_pictures, 1);
  EXPECT_EQ(a.hidden, 1);
  EXPECT_EQ(a.folders, "folder.jpg\n");
}

TEST_F(ListingOf, AFolderThatCannotBeRead) {
  expect_error([&] { list_images(root_.path(), "none"); }, ErrorKind::Io, {root_ / "none"});
}

// torchvision sorts a class's folders by their whole paths: '-' before '/'.
TEST_F(ListingOf, FoldersWithinAClass) {
  root_.add("train/a/sub/1.jpg", "x");
  root_.add("train/a/sub/deep/2.jpg", "x");
  root_.add("train/a/sub-b/3.jpg", "x");
  fs::create_directory_symlink(root_ / "val/a", root_ / "train/a/linked");
  fs::create_symlink(root_ / "val/a/v.jpg", root_ / "train/a/link.jpg");
  EXPECT_EQ(
      images(),
      (Names{
          "train/a/link.jpg", "train/a/x.jpeg", "train/a/linked/v.jpg", "train/a/sub/1.jpg",
          "train/a/sub-b/3.jpg", "train/a/sub/deep/2.jpg", "train/b/1.JPEG", "train/b/2.jpg"}));
}

TEST_F(ListingOf, LinksInACircleAreAnError) {
  fs::create_directory_symlink(root_ / "train", root_ / "train/a/up");
  expect_error([&] { images(); }, ErrorKind::DamagedData, {"a link to a folder above"});
}

}  // namespace
}  // namespace abtrain::data
