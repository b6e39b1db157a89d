// Mapped files that become shorter while they are read.
#include "base/file_mapping.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "error_of.h"
#include "process_end.h"
#include "temp_folder.h"

namespace abtrain {
namespace {

namespace fs = std::filesystem;

const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

class ShorterFiles : public ::testing::Test {
 protected:
  // A mapped file of ones.
  std::optional<FileMapping>& map(const std::string& name, std::size_t bytes) {
    mappings_.emplace_back(std::make_unique<std::optional<FileMapping>>());
    mappings_.back()->emplace(InputFile(folder_.add(name, std::string(bytes, '\1'))));
    return *mappings_.back();
  }
  static std::int64_t ones(const FileMapping& mapping) {
    return std::ranges::count(std::span(mapping.data(), mapping.size()), 1);
  }

  const TempFolder folder_;
  std::vector<std::unique_ptr<std::optional<FileMapping>>> mappings_;
};

TEST_F(ShorterFiles, LostBytesBecomeZerosAndTheFileIsNamed) {
  std::optional<FileMapping>& whole = map("whole", 2 * kPage);
  std::optional<FileMapping>& cut = map("cut", 5 * kPage + 7);
  check_sizes_of_mapped_files();
  fs::resize_file(folder_ / "cut", kPage);
  check_mapped_files();  // nothing was read
  EXPECT_EQ(ones(*cut), kPage);
  for (const auto& check : {check_mapped_files, check_sizes_of_mapped_files}) {
    expect_error(check, ErrorKind::Io, {folder_ / "cut", "another program shortened the file"});
  }
  EXPECT_EQ(ones(*cut), kPage);
  EXPECT_EQ(ones(*whole), 2 * kPage);
  cut.reset();
  check_sizes_of_mapped_files();
  // An entry that is used again knows nothing of the file before.
  std::optional<FileMapping>& next = map("next", 3 * kPage);
  EXPECT_EQ(ones(*next), 3 * kPage);
  check_sizes_of_mapped_files();
}

TEST_F(ShorterFiles, EachOfSeveralIsFound) {
  std::optional<FileMapping>& a = map("a", 4 * kPage);
  std::optional<FileMapping>& b = map("b", 4 * kPage);
  fs::resize_file(folder_ / "a", 0);
  fs::resize_file(folder_ / "b", 0);
  EXPECT_EQ(ones(*a) + ones(*b), 0);
  a.reset();
  expect_error(check_mapped_files, ErrorKind::Io, {folder_ / "b"});
  b.reset();
  check_mapped_files();
}

// Linux itself fills the last page with zeros.
TEST_F(ShorterFiles, AShorterLastPageShowsInTheSize) {
  const std::optional<FileMapping>& mapping = map("f", kPage + 100);
  fs::resize_file(folder_ / "f", kPage + 90);
  EXPECT_EQ(ones(*mapping), kPage + 90);
  check_mapped_files();
  expect_error(check_sizes_of_mapped_files, ErrorKind::Io, {folder_ / "f"});
}

TEST_F(ShorterFiles, AFileThatWasReplacedRemovedOrAppendedToKeepsItsBytes) {
  for (const char* name : {"replaced", "removed", "appended"}) {
    map(name, 3 * kPage);
  }
  folder_.add("other", "short");
  fs::rename(folder_ / "other", folder_ / "replaced");
  fs::remove(folder_ / "removed");
  fs::resize_file(folder_ / "appended", 9 * kPage);
  for (const auto& mapping : mappings_) {
    EXPECT_EQ(ones(**mapping), 3 * kPage);
  }
  check_sizes_of_mapped_files();
}

// Memory that is not a FileMapping is not made up.
TEST_F(ShorterFiles, OtherBusErrorsStillEndTheProcess) {
  map("f", 2 * kPage);
  const auto elsewhere = [&] {
    const InputFile other(folder_.add("other", std::string(2 * kPage, '\1')));
    const auto* bytes = static_cast<const volatile char*>(
        ::mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, other.descriptor(), 0));
    fs::resize_file(folder_ / "other", 0);
    ::_exit(bytes[kPage]);
  };
  EXPECT_EQ(end_of_fork(elsewhere).first, -SIGBUS);
  EXPECT_EQ(end_of_fork([] { ::raise(SIGBUS); }).first, -SIGBUS);
}

}  // namespace
}  // namespace abtrain
