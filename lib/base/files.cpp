#define XXH_INLINE_ALL
#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/output.h"

namespace abtrain {
namespace {

// Unless `ok`, throws Error(Io) with the reason in errno.
void check(bool ok, const char* what, const std::string& path) {
  ABT_CHECK(ok, Io, "cannot {} '{}': {}", what, path, std::generic_category().message(errno));
}

Descriptor open_file(
    const std::string& path, int flags, const char* what, const std::string& shown) {
  Descriptor file(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); }));
  check(file.is_open(), what, shown);
  return file;
}

// Some network file systems report a full disk only on close.
void close_written(Descriptor file, const std::string& path) {
  check(::close(file.release()) == 0 || errno == EINTR, "write", path);
}

void write_to(int file, std::string_view content, const std::string& path) {
  check(write_all(file, content), "write", path);
}

void flush(int file, const std::string& path) {
  // EINVAL means a device or pipe, which cannot be synced.
  check(uninterrupted([&] { return ::fsync(file); }) == 0 || errno == EINVAL, "flush", path);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Opens a file to read it, and checks that it is regular.
Descriptor open_input(const std::string& path, struct stat& status, Fifo fifo) {
  ABT_CHECK(
      ::access(path.c_str(), F_OK) == 0 || errno != ENOENT, MissingInput, "there is no file '{}'",
      path);
  check(uninterrupted([&] { return ::stat(path.c_str(), &status); }) == 0, "read", path);
  // A FIFO may have taken the file's place since stat(): O_NONBLOCK keeps open() from blocking.
  const bool waits = fifo == Fifo::Wait && S_ISFIFO(status.st_mode);
  Descriptor file = open_file(path, waits ? O_RDONLY : O_RDONLY | O_NONBLOCK, "read", path);
  check(::fstat(file.get(), &status) == 0, "read", path);
  ABT_CHECK(
      S_ISREG(status.st_mode) || (waits && S_ISFIFO(status.st_mode)), DamagedData,
      "{}: expected a file, found {}", path,
      S_ISDIR(status.st_mode) ? "a folder" : "a device or pipe");
  return file;
}

// Gives `file` the permissions (rwx bits) of the file at `from` and, if the system permits it, its
// owner and group.
void take_permissions(int file, const std::string& from) {
  struct stat status {};
  if (::stat(from.c_str(), &status) == 0) {
    [[maybe_unused]] const int ignored = ::fchown(file, status.st_uid, status.st_gid);
    ::fchmod(file, status.st_mode & 0777);
  }
}

// The length of the file up to and including its last newline.
std::int64_t whole_lines(int file, std::int64_t size, const std::string& path) {
  std::array<char, 4096> block;
  while (size > 0) {
    const std::int64_t begin =
        std::max<std::int64_t>(0, size - static_cast<std::int64_t>(block.size()));
    const auto length = static_cast<std::size_t>(size - begin);
    const ssize_t got = uninterrupted([&] { return ::pread(file, block.data(), length, begin); });
    check(got == static_cast<ssize_t>(length), "read", path);
    const std::size_t newline = std::string_view(block.data(), length).rfind('\n');
    if (newline != std::string_view::npos) {
      return begin + static_cast<std::int64_t>(newline) + 1;
    }
    size = begin;
  }
  return 0;
}

}  // namespace

std::string read_file(const std::string& path, std::uint64_t most, Fifo fifo) {
  struct stat status {};
  const Descriptor file = open_input(path, status, fifo);
  const auto check_size = [&](std::uint64_t bytes) {
    ABT_CHECK(
        bytes <= most, DamagedData, "{}: expected at most {}, found {}", path,
        human_bytes(static_cast<double>(most)), human_bytes(static_cast<double>(bytes)));
  };
  check_size(static_cast<std::uint64_t>(status.st_size));
  std::string content;
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t got =
        uninterrupted([&] { return ::read(file.get(), block.data(), block.size()); });
    if (got == 0) {
      return content;
    }
    check(got > 0, "read", path);
    content.append(block.data(), static_cast<std::size_t>(got));
    // The size of a FIFO or of a file in /proc is not known in advance.
    check_size(content.size());
  }
}

void atomic_write(const std::string& path, std::string_view content) {
  atomic_write(path, [&](const WritePiece& write) { write(content); });
}

void atomic_write(const std::string& path, const std::function<void(const WritePiece&)>& body) {
  const OutputPlace place = find_output(path);
  if (place.is_stream) {
    Descriptor file = place.descriptor >= 0
                          ? Descriptor(::fcntl(place.descriptor, F_DUPFD_CLOEXEC, 0))
                          : open_file(path, O_WRONLY, "write", path);
    check(file.is_open(), "write", path);
    body([&](std::string_view piece) { write_to(file.get(), piece, path); });
    close_written(std::move(file), path);
    return;
  }
  // The suffix is random, not a process ID, as processes in different containers may have the same
  // ID. In a shared folder, nobody can guess this name and place a link there.
  std::uint64_t unique = 0;
  ABT_ASSERT(::getentropy(&unique, sizeof unique) == 0, "getentropy");
  const std::string beside = formatted("{}.tmp{:016x}", place.path, unique);
  try {
    Descriptor file = open_file(beside, O_WRONLY | O_CREAT | O_EXCL, "write", path);
    take_permissions(file.get(), place.path);
    body([&](std::string_view piece) { write_to(file.get(), piece, path); });
    flush(file.get(), path);
    close_written(std::move(file), path);
    const auto rename = [&] { return ::rename(beside.c_str(), place.path.c_str()); };
    check(uninterrupted(rename) == 0, "write", path);
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
  sync_path(folder_of(place.path));
}

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  struct stat status {};
  file_ = open_input(path_, status, Fifo::Refuse);
  size_ = static_cast<std::uint64_t>(status.st_size);
  constexpr std::string_view kPointer = "version https://git-lfs";
  constexpr std::uint64_t kLargestPointer = 1024;
  if (size_ >= kPointer.size() && size_ < kLargestPointer) {
    std::string begin(kPointer.size(), '\0');
    ABT_CHECK(
        read_some(0, begin.data(), begin.size()) != begin.size() || begin != kPointer, DamagedData,
        "{}: this is a pointer of Git LFS in place of the file; `git lfs pull` gets the file",
        path_);
  }
}

std::size_t InputFile::read_some(std::uint64_t offset, void* out, std::size_t bytes) const {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = uninterrupted([&] {
      return ::pread(
          file_.get(), static_cast<char*>(out) + done, bytes - done,
          static_cast<off_t>(offset + done));
    });
    check(got >= 0, "read", path_);
    if (got == 0) {
      break;
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void InputFile::read(std::uint64_t offset, void* out, std::size_t bytes) const {
  ABT_CHECK(
      read_some(offset, out, bytes) == bytes, Io,
      "cannot read '{}': it has become shorter in the meantime", path_);
}

void InputFile::copy(std::uint64_t begin, std::uint64_t end, const WritePiece& write) const {
  std::string block;
  for (std::uint64_t at = begin; at < end; at += block.size()) {
    block.resize(std::min<std::uint64_t>(end - at, 1 << 20));
    read(at, block.data(), block.size());
    write(block);
  }
}

SpoolFile::SpoolFile(std::string path) : InputFile(std::move(path), Descriptor()) {
  const OutputPlace place = find_output(path_);
  std::string name =
      (place.is_stream ? (std::filesystem::temp_directory_path() / "abtrain").string()
                       : place.path) +
      ".spool-XXXXXX";
  file_ = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
  check(file_.is_open(), "write", path_);
  ::unlink(name.c_str());
}

void SpoolFile::write(std::string_view piece) {
  write_to(file_.get(), piece, path_);
  size_ += piece.size();
}

std::uint64_t hash_of_text(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::uint64_t hash_of(const InputFile& file) {
  XXH3_state_t digest;
  XXH3_64bits_reset(&digest);
  file.copy(0, file.size(), [&](std::string_view piece) {
    XXH3_64bits_update(&digest, piece.data(), piece.size());
  });
  return XXH3_64bits_digest(&digest);
}

std::string hash_text(std::uint64_t hash) {
  return formatted("{:016x}", hash);
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_known_there(const std::string& path) {
  struct stat status {};
  const bool found = uninterrupted([&] { return ::stat(path.c_str(), &status); }) == 0;
  check(found || errno == ENOENT || errno == ENOTDIR, "read", path);
  return found;
}

std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end;
       i.increment(error)) {
    entries.push_back(i->path());
  }
  std::ranges::sort(entries);
  return entries;
}

std::filesystem::path real_path(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real;
}

void make_folders(const std::string& path) {
  std::error_code error;
  do {
    std::filesystem::create_directories(path, error);
  } while (error == std::errc::interrupted);
  ABT_CHECK(!error, Io, "cannot create folder '{}': {}", path, error.message());
}

std::string make_temporary_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "abtrain-XXXXXX").string();
  check(::mkdtemp(name.data()) != nullptr, "make", name);
  return name;
}

void rename_path(const std::string& from, const std::string& to) {
  const auto rename = [&] { return ::rename(from.c_str(), to.c_str()); };
  ABT_CHECK(
      uninterrupted(rename) == 0, Io, "cannot rename '{}' to '{}': {}", from, to,
      std::generic_category().message(errno));
}

void remove_path(const std::string& path) {
  std::error_code error;
  do {
    std::filesystem::remove_all(path, error);
  } while (error == std::errc::interrupted);
  ABT_CHECK(!error, Io, "cannot remove '{}': {}", path, error.message());
}

void sync_path(const std::string& path) {
  const Descriptor file = open_file(path, O_RDONLY, "flush", path);
  flush(file.get(), path);
}

Appender::Appender(std::string path) : path_(std::move(path)) {
  file_ = open_file(path_, O_RDWR | O_CREAT | O_APPEND, "write", path_);
  struct stat status {};
  check(::fstat(file_.get(), &status) == 0, "write", path_);
  // A pipe that nobody reads would stop the program once it is full.
  ABT_CHECK(!S_ISFIFO(status.st_mode), DamagedData, "{}: expected a file, found a pipe", path_);
  is_regular_ = S_ISREG(status.st_mode);
  size_ = is_regular_ ? std::int64_t{status.st_size} : 0;
}

void Appender::write(std::string_view bytes) {
  try {
    write_to(file_.get(), bytes, path_);
  } catch (const Error&) {
    [[maybe_unused]] const int ignored =
        is_regular_ ? uninterrupted([&] { return ::ftruncate(file_.get(), size_); }) : 0;
    throw;
  }
  size_ += static_cast<std::int64_t>(bytes.size());
}

void Appender::keep_lines(std::int64_t bytes) {
  if (!is_regular_) {
    return;
  }
  ABT_CHECK(
      bytes <= size_, DamagedData, "'{}': expected at least {} bytes, found {}", path_, bytes,
      size_);
  const std::int64_t kept = whole_lines(file_.get(), bytes >= 0 ? bytes : size_, path_);
  const auto cut = [&] { return ::ftruncate(file_.get(), kept); };
  check(kept == size_ || uninterrupted(cut) == 0, "write", path_);
  size_ = kept;
}

std::string Appender::find_again() {
  if (!is_regular_) {
    return "";
  }
  struct stat own {};
  struct stat there {};
  check(::fstat(file_.get(), &own) == 0, "read", path_);
  const bool is_gone = uninterrupted([&] { return ::stat(path_.c_str(), &there); }) != 0;
  check(!is_gone || errno == ENOENT, "read", path_);
  if (!is_gone && there.st_dev == own.st_dev && there.st_ino == own.st_ino) {
    const std::int64_t before = std::exchange(size_, std::min(size_, std::int64_t{own.st_size}));
    return size_ == before ? ""
                           : formatted(
                                 "another process shortened '{}' from {} to {} bytes; the run "
                                 "keeps appending to it",
                                 path_, before, size_);
  }
  if (is_gone) {
    atomic_write(path_, [&](const WritePiece& write) {
      std::string block;
      for (std::int64_t at = 0; at < size_; at += std::ssize(block)) {
        block.resize(static_cast<std::size_t>(std::min<std::int64_t>(size_ - at, 1 << 20)));
        const ssize_t got =
            uninterrupted([&] { return ::pread(file_.get(), block.data(), block.size(), at); });
        check(got >= 0, "read", path_);
        if (got == 0) {
          break;  // another process had shortened it before
        }
        block.resize(static_cast<std::size_t>(got));
        write(block);
      }
    });
  }
  *this = Appender(path_);
  return is_gone
             ? formatted("'{}' was removed by another process; it has been written again", path_)
             : formatted(
                   "'{}' was replaced by another process; the run goes on at the end of the "
                   "new file, and what it had written before is lost",
                   path_);
}

void Appender::sync() {
  flush(file_.get(), path_);
}

}  // namespace abtrain
