#include "data/images/image_listing.h"

#include <unistd.h>

#include "base/files.h"
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
    make_all_old(root_.path());
  }
  Listing list() const {
    return list_images(root_.path(), {"train", "val"}, cache_.path());
  }
  // Paths of all images, in their order.
  Names images(const Listing& listing) const {
    Names out;
    for (const ListedFolder& folder : listing.folders) {
      const Names names = lines_of(folder.images);
      EXPECT_EQ(folder.image_count, std::int64_t(names.size()));
      for (const std::string& name : names) {
        out.push_back(folder.path + "/" + name);
      }
    }
    return out;
  }
  const TempFolder root_, cache_;
  const std::string index_ = root_ / ".abtrain-index";
  const Names all_ = {"train/a/x.jpeg", "train/b/1.JPEG", "train/b/2.jpg", "val/a/v.jpg"};
};

TEST_F(ListingOf, ASecondStartReadsNoFolder) {
  const Listing first = list();
  EXPECT_EQ(first.read, 5);
  EXPECT_EQ(first.index, index_);
  EXPECT_EQ(first.remarks, "");
  EXPECT_EQ(images(first), all_);
  const std::string index = read_file(index_);
  const auto written = fs::last_write_time(index_);
  const Listing second = list();
  EXPECT_EQ(second.read, 0);
  EXPECT_EQ(second.index, index_);
  EXPECT_EQ(images(second), all_);
  EXPECT_EQ(read_file(index_), index);
  EXPECT_EQ(fs::last_write_time(index_), written);
  EXPECT_TRUE(fs::is_empty(cache_.path()));
}

TEST_F(ListingOf, ChangesAreSeenFolderByFolder) {
  list();
  root_.add("train/b/3.jpg", "x");
  make_old(root_ / "train/b", 1);
  Listing listing = list();
  EXPECT_EQ(listing.read, 1);
  EXPECT_EQ(images(listing).size(), 5u);
  EXPECT_EQ(images(listing)[3], "train/b/3.jpg");
  EXPECT_EQ(list().read, 0);

  fs::remove(root_ / "train/b/1.JPEG");
  make_old(root_ / "train/b", 2);
  listing = list();
  EXPECT_EQ(listing.read, 1);
  EXPECT_EQ(
      images(listing), (Names{"train/a/x.jpeg", "train/b/2.jpg", "train/b/3.jpg", "val/a/v.jpg"}));

  // A class more and a class less: the part's own folder has changed.
  root_.add("train/c/1.jpg", "x");
  make_old(root_ / "train", 3);
  make_old(root_ / "train/c", 3);
  listing = list();
  EXPECT_EQ(listing.read, 2);
  EXPECT_EQ(images(listing)[3], "train/c/1.jpg");
  fs::remove_all(root_ / "train/a");
  make_old(root_ / "train", 4);
  listing = list();
  EXPECT_EQ(listing.read, 1);
  EXPECT_EQ(images(listing)[0], "train/b/2.jpg");
  EXPECT_EQ(list().read, 0);
}

// Two changes within one tick of the clock look like one: a folder that has
// just changed is read again.
TEST_F(ListingOf, AYoungFolderIsNotTrusted) {
  root_.add("train/a/y.jpg", "x");
  EXPECT_EQ(list().read, 5);
  EXPECT_EQ(list().read, 1);
  make_old(root_ / "train/a");
  EXPECT_EQ(list().read, 1);
  EXPECT_EQ(list().read, 0);
}

TEST_F(ListingOf, ADamagedOrForeignIndexIsNotUsed) {
  list();
  const std::string index = read_file(index_);
  std::string changed = index;
  changed.replace(changed.find("2.jpg"), 5, "9.jpg");
  std::string older = index;
  older.replace(older.find("index 2"), 7, "index 1");
  for (const std::string& bad :
       {changed, older, index.substr(0, index.size() / 2), index.substr(0, index.size() - 1),
        std::string("checksum "), std::string("\0\1\2", 3), std::string()}) {
    root_.add(".abtrain-index", bad);
    const Listing listing = list();
    EXPECT_EQ(listing.read, 5);
    EXPECT_NE(listing.remarks.find(index_), std::string::npos);
    EXPECT_EQ(images(listing), all_);
    EXPECT_EQ(read_file(index_), index);
  }
}

// A folder in the place of the index cannot be replaced, not even by root.
TEST_F(ListingOf, TheIndexGoesElsewhereWhereTheRootCannotBeWritten) {
  fs::create_directories(index_ + "/full");
  Listing listing = list();
  EXPECT_EQ(listing.index.rfind(cache_.path(), 0), 0u) << listing.index;
  EXPECT_EQ(list().read, 0);
  EXPECT_EQ(images(list()), all_);
  // The root becomes writable: the cached one goes.
  fs::remove_all(index_);
  root_.add("val/a/w.jpg", "x");
  make_old(root_ / "val/a", 2);
  listing = list();
  EXPECT_EQ(listing.read, 1);
  EXPECT_EQ(listing.index, index_);
  EXPECT_TRUE(fs::is_empty(cache_.path()));
}

TEST_F(ListingOf, NoIndexIsARemarkOnly) {
  fs::create_directories(index_ + "/full");
  const Listing listing = list_images(root_.path(), {"train"}, "");
  EXPECT_EQ(listing.index, "");
  EXPECT_NE(listing.remarks.find("could not be saved"), std::string::npos);
  EXPECT_EQ(images(listing).size(), 3u);
}

TEST_F(ListingOf, WhatCountsAsAnImage) {
  root_.add("train/a/notes.txt", "x");
  root_.add("train/a/jpg", "x");
  root_.add("train/a/.hidden.jpg", "x");
  root_.add("train/a/new\nline.jpg", "x");
  root_.add("train/beside.jpg", "x");
  root_.add("train/.git/1.jpg", "x");
  fs::create_directory(root_ / "train/a/folder.jpg");
  const Listing listing = list();
  Names with = all_;
  with.insert(with.begin(), "train/beside.jpg");
  EXPECT_EQ(images(listing), with);
  std::int64_t others = 0;
  for (const ListedFolder& folder : listing.folders) {
    others += folder.others;
  }
  EXPECT_EQ(others, 3);
  // From the index, too.
  make_all_old(root_.path());
  list();
  const Listing again = list();
  EXPECT_EQ(again.read, 0);
  const auto a = std::ranges::find(again.folders, "train/a", &ListedFolder::path);
  ASSERT_NE(a, again.folders.end());
  EXPECT_EQ(a->some_others, "jpg\nnotes.txt\n");
}

// torchvision sorts a class's folders by their whole paths: '-' before '/'.
TEST_F(ListingOf, FoldersWithinAClass) {
  root_.add("train/a/sub/1.jpg", "x");
  root_.add("train/a/sub/deep/2.jpg", "x");
  root_.add("train/a/sub-b/3.jpg", "x");
  fs::create_directory_symlink(root_ / "val/a", root_ / "train/a/linked");
  fs::create_symlink(root_ / "val/a/v.jpg", root_ / "train/a/link.jpg");
  make_all_old(root_.path());
  for (int start = 0; start < 2; ++start) {
    const Listing listing = list();
    EXPECT_EQ(listing.read, start == 0 ? 9 : 0);
    EXPECT_EQ(
        images(listing), (Names{
                             "train/a/link.jpg", "train/a/x.jpeg", "train/a/linked/v.jpg",
                             "train/a/sub/1.jpg", "train/a/sub-b/3.jpg", "train/a/sub/deep/2.jpg",
                             "train/b/1.JPEG", "train/b/2.jpg", "val/a/v.jpg"}));
  }
}

TEST_F(ListingOf, LinksInACircleAreAnError) {
  fs::create_directory_symlink(root_ / "train", root_ / "train/a/up");
  expect_error([&] { list(); }, ErrorKind::DamagedData, {"a link to a folder above"});
}

}  // namespace
}  // namespace abtrain::data
