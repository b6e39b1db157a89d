// Reads and writes files. A file is replaced as a whole, so that no reader sees half of it.
// Failures throw Error(Io), which names the path and the reason; a missing input throws
// Error(MissingInput).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"

namespace abtrain {

// Limits in bytes for read_file(), which refuses a larger file.
inline constexpr std::uint64_t kMaxText = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMaxLines = std::uint64_t{8} << 30;

// Wait: read_file() reads a FIFO like a file, and so waits for its writer.
enum class Fifo { Refuse, Wait };

// Returns the content of a regular file (with Fifo::Wait, also of a FIFO). Throws
// Error(DamagedData) for anything else, and if there are more than `most` bytes.
std::string read_file(
    const std::string& path, std::uint64_t most = kMaxText, Fifo fifo = Fifo::Refuse);

// Whether the file or folder exists; false if that cannot be determined.
bool is_there(const std::string& path);
// The same, but throws Error(Io) if the file system cannot tell, for example after a network disk
// has lost a folder.
bool is_known_there(const std::string& path);

// Writes a temporary file beside `path`, syncs it, renames it over `path` and syncs the folder. If
// anything fails, the old file stays as it was. Links are followed, and the permissions and owner
// of a replaced file are kept. Devices, pipes and sockets are written to directly.
void atomic_write(const std::string& path, std::string_view content);
// The same for content that comes in pieces: `body` passes each piece to its argument.
using WritePiece = std::function<void(std::string_view)>;
void atomic_write(const std::string& path, const std::function<void(const WritePiece&)>& body);

// A file that is read in pieces at any offset. Throws Error: MissingInput,
// DamagedData if it is not a regular file, or Io if it ends early.
class InputFile {
 public:
  explicit InputFile(std::string path);

  std::uint64_t size() const {
    return size_;
  }
  const std::string& path() const {
    return path_;
  }
  int descriptor() const {
    return file_.get();
  }
  // Reads up to `bytes` bytes into `out`; returns fewer only if the file ends.
  std::size_t read_some(std::uint64_t offset, void* out, std::size_t bytes) const;
  // Reads exactly `bytes` bytes into `out`.
  void read(std::uint64_t offset, void* out, std::size_t bytes) const;
  // Passes the bytes from `begin` to `end` to `write`, in order and in pieces.
  void copy(std::uint64_t begin, std::uint64_t end, const WritePiece& write) const;

 protected:
  InputFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

// XXH3 (64 bits) of a file's content. Throws Io.
std::uint64_t hash_of(const InputFile& file);
std::uint64_t hash_of_text(std::string_view text);
// The hash as 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

// Keeps bytes on disk until their destination is known. The file has no name, so nothing is left of
// it however the program ends.
class SpoolFile : private InputFile {
 public:
  // The file is created in the folder of `path`, or in the system's temporary
  // folder if `path` is a stream. Errors name `path`.
  explicit SpoolFile(std::string path);

  void write(std::string_view piece);
  using InputFile::copy;
  using InputFile::size;
};

// The entries of a folder, sorted by name; empty if it cannot be read.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

// Returns the path with links and dots resolved, so that all paths of one file become equal.
// Returns the path itself if links form a cycle or vanish while they are followed.
std::filesystem::path real_path(const std::filesystem::path& path);

// Creates the folder and its parents. It is no error if they exist.
void make_folders(const std::string& path);

// Creates a folder with a unique name, for this user alone, in the system's folder for temporary
// files ($TMPDIR).
std::string make_temporary_folder();

// Renames a file or folder; a file or an empty folder of the new name is
// replaced.
void rename_path(const std::string& from, const std::string& to);

// Removes a file, or a folder with its content. It is no error if neither exists.
void remove_path(const std::string& path);

// Forces a file, or the entries of a folder, to disk.
void sync_path(const std::string& path);

// Appends to a file, creating it if it does not exist. If a write() fails, none of its bytes stay
// in the file. Move-only; not thread-safe.
class Appender {
 public:
  explicit Appender(std::string path);

  void write(std::string_view bytes);
  void sync();
  const std::string& path() const {
    return path_;
  }
  std::int64_t size() const {
    return size_;
  }
  // Checks whether another process has removed, replaced or shortened the file. If so, continues
  // with the file that now has this path, and returns a warning for the user, else "". A removed
  // file is written again; the old content of a replaced file is lost. On failure, throws
  // Error(Io), and the next call tries again.
  std::string find_again();
  // Keeps the whole lines in the first `bytes` bytes (-1: in the whole file), and cuts off the
  // rest, such as the incomplete last line of a writer that was killed.
  void keep_lines(std::int64_t bytes = -1);

 private:
  std::string path_;
  Descriptor file_;
  bool is_regular_ = false;
  std::int64_t size_ = 0;
};

}  // namespace abtrain
