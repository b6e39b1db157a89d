// Files, written so that a reader never sees half of one. Failures throw
// Error(Io) naming path and reason; a missing input is Error(MissingInput).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace abtrain {

std::string read_file(const std::string& path);

// Written beside its place, fsynced, renamed over it, the folder fsynced. A
// failure leaves what was there. Links are followed, and the permissions and
// owner of a replaced file are kept. Streams (base/output.h) are written to.
void atomic_write(const std::string& path, std::string_view content);
// The same for content that comes in pieces: `body` hands them to its argument.
using WritePiece = std::function<void(std::string_view)>;
void atomic_write(
    const std::string& path,
    const std::function<void(const WritePiece&)>& body);

// A file that is read piece by piece, at any place. Throws MissingInput;
// DamagedData where it is a folder or no plain file; Io where it ends early.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const {
    return size_;
  }
  const std::string& path() const {
    return path_;
  }
  // Whole, into `bytes` bytes at `out`.
  void read(std::uint64_t offset, void* out, std::size_t bytes) const;

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

// Bytes put aside on the disk until it is known where they belong. It has no
// name, so nothing is left of it however the program ends.
class SpoolFile {
 public:
  // Lies in the folder of `path`, which errors name; beside temporary files
  // where that is a stream.
  explicit SpoolFile(std::string path);
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;

  void write(std::string_view piece);
  std::uint64_t size() const {
    return size_;
  }
  // All of it, in order and in pieces.
  void copy_to(const WritePiece& write) const;

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

// The folder and its parents; fine where they exist.
void make_folders(const std::string& path);

// Forces a file, or the entries of a folder, to the disk.
void sync_path(const std::string& path);

// Appends to a file, which is created where it is not there; each call is one
// write. Move-only; not thread-safe.
class Appender {
 public:
  explicit Appender(std::string path);
  ~Appender();
  Appender(Appender&& other) noexcept;
  Appender& operator=(Appender&&) = delete;

  void write(std::string_view bytes);
  void sync();
  const std::string& path() const {
    return path_;
  }

 protected:
  int file() const {
    return file_;
  }

 private:
  std::string path_;
  int file_ = -1;
};

// Appends whole lines.
class LineWriter : private Appender {
 public:
  // Creates the file where it is not there. A torn last line (the writer was
  // killed) is cut off; `keep` >= 0 cuts the file to that many bytes first.
  explicit LineWriter(std::string path, std::int64_t keep = -1);

  // `line` without its newline.
  void write(std::string_view line);
  using Appender::path;
  using Appender::sync;
  // Bytes in the file.
  std::int64_t size() const {
    return size_;
  }

 private:
  std::int64_t size_ = 0;
};

}  // namespace abtrain
