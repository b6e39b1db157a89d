#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "error_of.h"
#include "special_file.h"
#include "temp_folder.h"

namespace abtrain {
namespace {

// Files of this process may not grow beyond `bytes`, as on a full disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(Files, ReadsBytesAsTheyAre) {
  const TempFolder folder;
  const std::string content = std::string("a\0b\r\n", 5) + std::string(200000, 'x');
  EXPECT_EQ(read_file(folder.add("a", content)), content);
  EXPECT_EQ(read_file(folder.add("empty", "")), "");
}

TEST(Files, MissingAndUnreadableInputsDiffer) {
  const TempFolder folder;
  expect_error([&] { read_file(folder.file("no")); }, ErrorKind::MissingInput, {folder.file("no")});
}

TEST(Files, OnlyRegularFilesOfABoundedSizeAreRead) {
  const TempFolder folder;
  const std::string path = folder.add("a", "12345678");
  EXPECT_EQ(read_file(path, 8), "12345678");
  expect_error(
      [&] { read_file(path, 7); }, ErrorKind::DamagedData,
      {path + ": expected at most 7 B, found 8 B"});
  for (const Special kind : kSpecials) {
    make_special(path, kind);
    expect_error([&] { read_file(path); }, ErrorKind::DamagedData);
    if (kind != Special::Huge) {
      expect_error([&] { InputFile{path}; }, ErrorKind::DamagedData);
    }
  }
  // A file of /proc does not tell its size before it is read.
  EXPECT_FALSE(read_file("/proc/self/status").empty());
  expect_error([&] { read_file("/proc/self/status", 9); }, ErrorKind::DamagedData);
}

TEST(Files, AFifoIsReadOnlyWhereItMayBe) {
  const TempFolder folder;
  const std::string path = folder.file("fifo");
  make_special(path, Special::Fifo);
  const auto read_with_writer = [&](std::uint64_t most) {
    const std::jthread writer([&] { std::ofstream(path) << "12345678"; });
    return read_file(path, most, Fifo::Wait);
  };
  EXPECT_EQ(read_with_writer(8), "12345678");
  expect_error([&] { read_with_writer(7); }, ErrorKind::DamagedData);
  expect_error([&] { Appender{path}; }, ErrorKind::DamagedData);
}

TEST(Files, InputsAreReadAtAnyPlace) {
  const TempFolder folder;
  const InputFile file(folder.add("a", std::string("01\0abc", 6)));
  EXPECT_EQ(file.size(), 6u);
  std::string part(3, '?');
  file.read(2, part.data(), 3);
  EXPECT_EQ(part, std::string("\0ab", 3));
  file.read(6, part.data(), 0);
  expect_error([&] { file.read(4, part.data(), 3); }, ErrorKind::Io, {"shorter"});
  EXPECT_EQ(InputFile(folder.add("empty", "")).size(), 0u);
  expect_error([&] { InputFile(folder.file("no")); }, ErrorKind::MissingInput);
  expect_error([&] { InputFile(folder.path()); }, ErrorKind::DamagedData, {"found a folder"});
}

TEST(Files, SpoolsHaveNoNameAndGiveBackWhatTheyTook) {
  const TempFolder folder;
  SpoolFile spool(folder.file("out"));
  EXPECT_EQ(files_in(folder.path()), 0u);
  std::string all;
  spool.copy(0, spool.size(), [&](std::string_view piece) { all += piece; });
  EXPECT_EQ(all, "");
  const std::string large((1 << 20) + 7, 'x');
  spool.write("a");
  spool.write(large);
  EXPECT_EQ(spool.size(), large.size() + 1);
  spool.copy(0, spool.size(), [&](std::string_view piece) { all += piece; });
  EXPECT_EQ(all, "a" + large);
  expect_error([&] { SpoolFile(folder.file("x/y")); }, ErrorKind::Io, {"x/y'"});
}

TEST(Files, AtomicWriteReplacesAndLeavesNothingBeside) {
  const TempFolder folder;
  const std::string path = folder.add("a", "old");
  atomic_write(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(Files, AtomicWriteOnAFullDiskKeepsWhatWasThere) {
  const TempFolder folder;
  const std::string path = folder.add("a", "old");
  {
    const SmallDisk small(1024);
    expect_error(
        [&] { atomic_write(path, std::string(4096, 'x')); }, ErrorKind::Io,
        {"'" + path + "': File too large"});
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(Files, AtomicWriteNamesPathAndReason) {
  const TempFolder folder;
  expect_error(
      [&] { atomic_write(folder.file("x/y"), "z"); }, ErrorKind::Io, {"x/y", "No such file"});
}

TEST(Files, MakeFoldersMakesParentsAndStopsAtFiles) {
  const TempFolder folder;
  make_folders(folder.file("a/b/c"));
  make_folders(folder.file("a/b/c"));
  EXPECT_TRUE(std::filesystem::is_directory(folder.file("a/b/c")));
  folder.add("file", "");
  expect_error([&] { make_folders(folder.file("file/x")); }, ErrorKind::Io);
  EXPECT_NO_THROW(sync_path(folder.file("a")));
  expect_error([&] { sync_path(folder.file("none")); }, ErrorKind::Io);
}

Appender lines_of(const std::string& path, std::int64_t keep = -1) {
  Appender lines(path);
  lines.keep_lines(keep);
  return lines;
}

TEST(Files, RealPathsAreOneForAllNamesOfAFile) {
  const TempFolder folder;
  const std::filesystem::path real = std::filesystem::canonical(folder.path());
  folder.add("a", "a");
  std::filesystem::create_symlink("a", folder.file("link"));
  std::filesystem::create_symlink("circle", folder.file("circle"));
  EXPECT_EQ(real_path(folder.file("./link")), real / "a");
  EXPECT_EQ(real_path(folder.file("none")), real / "none");
  EXPECT_EQ(real_path(folder.file("circle")), folder.file("circle"));
}

TEST(Appender, AppendsAndCutsATornLine) {
  const TempFolder folder;
  const std::string path = folder.file("a.jsonl");
  {
    Appender writer = lines_of(path);
    writer.write("one\n");
    Appender moved = std::move(writer);
    moved.write("two\n");
    moved.sync();
    EXPECT_EQ(moved.size(), 8);
  }
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  folder.add("a.jsonl", "one\ntwo\n{\"torn\": ");
  {
    Appender writer = lines_of(path);
    EXPECT_EQ(writer.size(), 8);
    writer.write("three\n");
  }
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\n");
}

TEST(Appender, TornLinesMayBeLong) {
  const TempFolder folder;
  const std::string path = folder.add("a", "one\n" + std::string(10000, 'x'));
  EXPECT_EQ(lines_of(path).size(), 4);
  EXPECT_EQ(lines_of(folder.add("b", std::string(9000, 'x'))).size(), 0);
}

TEST(Appender, GoesBackToAPosition) {
  const TempFolder folder;
  const std::string path = folder.add("a", "one\ntwo\nthree\n");
  EXPECT_EQ(lines_of(path, 4).size(), 4);
  EXPECT_EQ(read_file(path), "one\n");
  expect_error(
      [&] { lines_of(path, 100); }, ErrorKind::DamagedData, {"at least 100 bytes, found 4"});
}

TEST(Appender, OfALineWithoutRoomNothingStays) {
  const TempFolder folder;
  const std::string path = folder.file("a.jsonl");
  Appender writer = lines_of(path);
  writer.write("one\n");
  {
    const SmallDisk disk(10);
    expect_error([&] { writer.write("much more\n"); }, ErrorKind::Io);
  }
  EXPECT_EQ(writer.size(), 4);
  EXPECT_EQ(read_file(path), "one\n");
  writer.write("two\n");
  EXPECT_EQ(read_file(path), "one\ntwo\n");
}

TEST(Appender, WritesAgainWhatWasRemoved) {
  const TempFolder folder;
  const std::string path = folder.file("a");
  Appender writer(path);
  writer.write("one\n" + std::string(3 << 20, 'x') + "\n");
  EXPECT_EQ(writer.find_again(), "");
  const std::string before = read_file(path);
  std::filesystem::remove(path);
  writer.write("two\n");
  expect_has(writer.find_again(), "'" + path + "' was removed by another process");
  EXPECT_EQ(writer.find_again(), "");
  writer.write("three\n");
  EXPECT_EQ(read_file(path), before + "two\nthree\n");
  EXPECT_EQ(writer.size(), std::ssize(before) + 10);
}

TEST(Appender, TriesAgainToWriteWhatWasRemoved) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("x"));
  const std::string path = folder.file("x/a");
  Appender writer(path);
  writer.write("one\n");
  std::filesystem::remove_all(folder.file("x"));
  expect_error([&] { writer.find_again(); }, ErrorKind::Io, {path});
  writer.write("two\n");
  std::filesystem::create_directory(folder.file("x"));
  expect_has(writer.find_again(), "was removed");
  EXPECT_EQ(read_file(path), "one\ntwo\n");
}

TEST(Appender, GoesOnInWhatHasReplacedItsFile) {
  const TempFolder folder;
  const std::string path = folder.file("a");
  Appender writer(path);
  writer.write("one\n");
  std::filesystem::rename(folder.add("b", "other\n"), path);
  expect_has(writer.find_again(), "was replaced by another process");
  writer.write("two\n");
  EXPECT_EQ(read_file(path), "other\ntwo\n");
  EXPECT_EQ(writer.size(), 10);
}

TEST(Appender, NoticesThatItsFileWasCut) {
  const TempFolder folder;
  const std::string path = folder.file("a");
  Appender writer(path);
  writer.write("one\ntwo\n");
  std::filesystem::resize_file(path, 5);
  expect_has(writer.find_again(), "from 8 to 5 bytes");
  EXPECT_EQ(writer.find_again(), "");
  EXPECT_EQ(writer.size(), 5);
}

TEST(Appender, StreamsAreNeverLost) {
  EXPECT_EQ(Appender("/dev/null").find_again(), "");
}

TEST(Appender, AFullDiskIsReported) {
  Appender writer = lines_of("/dev/full");
  EXPECT_EQ(
      error_of([&] { writer.write("x"); }),
      Thrown(74, "cannot write '/dev/full': No space left on device"));
}

}  // namespace
}  // namespace abtrain
