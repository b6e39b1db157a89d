// What -o may name: files, links, devices, FIFOs, and files of another kind.
// No test names /dev/null: a mistake would replace it for the whole machine.
#include "base/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "error_of.h"
#include "temp_folder.h"

namespace abtrain {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  ::lstat(path.c_str(), &status);
  return status.st_mode;
}

TEST(Output, LinksAreFollowedAndStay) {
  const TempFolder folder;
  folder.add("far/target", "old");
  fs::create_symlink("far/target", folder / "relative");
  fs::create_symlink(folder / "relative", folder / "absolute");
  atomic_write(folder / "absolute", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "absolute"));
  EXPECT_TRUE(fs::is_symlink(folder / "relative"));
  EXPECT_EQ(read_file(folder / "far/target"), "new");
  // A link to nothing yet.
  fs::create_symlink("far/later", folder / "early");
  atomic_write(folder / "early", "made");
  EXPECT_TRUE(fs::is_symlink(folder / "early"));
  EXPECT_EQ(read_file(folder / "far/later"), "made");
  fs::create_symlink("circle", folder / "circle");
  expect_error([&] { atomic_write(folder / "circle", "x"); }, ErrorKind::Io);
  EXPECT_TRUE(fs::is_symlink(folder / "circle"));
}

TEST(Output, FifosAreWrittenTo) {
  const TempFolder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  // Opened for both ends, so that neither waits for the other.
  const int end = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(end, 0);
  atomic_write(fifo, "through");
  char text[16] = {};
  EXPECT_EQ(::read(end, text, sizeof(text)), 7);
  EXPECT_STREQ(text, "through");
  ::close(end);
  EXPECT_TRUE(S_ISFIFO(mode_of(fifo)));
  SpoolFile spool(fifo);
  spool.write("x");
  EXPECT_TRUE(find_output(fifo).is_stream);
}

TEST(Output, DevicesAreWrittenTo) {
  const TempFolder folder;
  const std::string device = folder / "null";
  if (::mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "only root makes devices";
  }
  fs::create_symlink("null", folder / "link");
  for (const std::string& path : {device, folder / "link"}) {
    EXPECT_TRUE(find_output(path).is_stream);
    // Where a container forbids to open it, that alone is said.
    const auto error = error_of([&] { atomic_write(path, "gone"); });
    EXPECT_TRUE(error.first == 0 || error.first == 74) << error.second;
    EXPECT_TRUE(S_ISCHR(mode_of(device)));
  }
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
}

TEST(Output, DescriptorsAreThoseThatAreOpen) {
  const TempFolder folder;
  const std::string path = folder.add("log", "");
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(file, 0);
  // A re-opened file would begin anew, a rename would leave this one behind.
  for (const std::string place : {"/dev/fd/", "/proc/self/fd/"}) {
    EXPECT_EQ(::write(file, "before ", 7), 7);
    atomic_write(place + std::to_string(file), "mine ");
    EXPECT_EQ(::write(file, "after\n", 6), 6);
  }
  fs::create_symlink("/proc/self/fd/" + std::to_string(file), folder / "link");
  atomic_write(folder / "link", "linked");
  ::close(file);
  EXPECT_EQ(read_file(path), "before mine after\nbefore mine after\nlinked");
  EXPECT_TRUE(is_standard_output("-"));
  EXPECT_TRUE(is_standard_output("/dev/stdout"));
  EXPECT_FALSE(is_standard_output("/dev/stderr"));
  EXPECT_FALSE(is_standard_output("./-"));
  EXPECT_FALSE(is_standard_output(folder / "none/at/all"));
  // Their folders take no files.
  SpoolFile spool("/proc/self/fd/1");
  spool.write("x");
  EXPECT_EQ(spool.size(), 1U);
}

TEST(Output, PermissionsOfAReplacedFileStay) {
  const TempFolder folder;
  const std::string path = folder.add("a", "old");
  for (const fs::perms mode : {fs::perms{0640}, fs::perms{0600}}) {
    fs::permissions(path, mode);
    if (::geteuid() == 0) {
      ASSERT_EQ(::chown(path.c_str(), 12, 34), 0);
    }
    atomic_write(path, "new");
    EXPECT_EQ(fs::status(path).permissions(), mode);
    struct stat status {};
    ::stat(path.c_str(), &status);
    EXPECT_EQ(status.st_uid, ::geteuid() == 0 ? 12 : ::geteuid());
  }
  const mode_t before = ::umask(027);
  atomic_write(folder / "fresh", "");
  ::umask(before);
  EXPECT_EQ(fs::status(folder / "fresh").permissions(), fs::perms{0640});
}

TEST(Output, TwoWhoWriteTheSameFileDoNotDisturbEachOther) {
  const TempFolder folder;
  const std::string path = folder / "out";
  atomic_write(path, [&](const WritePiece& write) {
    write("out");
    atomic_write(path, "inner");
    EXPECT_EQ(read_file(path), "inner");
    write("er");
  });
  EXPECT_EQ(read_file(path), "outer");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(Output, FilesOfAnotherKindAreKept) {
  const TempFolder folder;
  const OutputKind kind{
      "-o", "a report", [](const std::string& begin) { return begin.starts_with("report"); }};
  const auto refused = [&](const std::string& path, bool force = false) {
    return error_of([&] { check_replaceable(path, kind, force); });
  };
  const std::string config = folder.add("my.yaml", "workers: 2\n");
  EXPECT_EQ(
      refused(config),
      Thrown(2, "-o: '" + config + "' already exists and is not a report; --force replaces it"));
  EXPECT_EQ(refused(config, true).first, 0);
  for (const std::string& path :
       {folder.add("old", "report of May"), folder.add("empty", ""), folder / "none",
        folder / "none/at/all", std::string("/dev/full"), std::string("-")}) {
    EXPECT_EQ(refused(path).first, 0) << path;
  }
  fs::create_symlink("my.yaml", folder / "link");
  EXPECT_EQ(refused(folder / "link").first, 2);
  expect_error(
      [&] { check_replaceable(folder.path(), kind, true); }, ErrorKind::Usage, {"is a folder"});
}

}  // namespace
}  // namespace abtrain
