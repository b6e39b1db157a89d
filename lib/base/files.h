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
// failure leaves what was there.
void atomic_write(const std::string& path, std::string_view content);
// The same for content that comes in pieces: `body` hands them to its argument.
using WritePiece = std::function<void(std::string_view)>;
void atomic_write(
    const std::string& path,
    const std::function<void(const WritePiece&)>& body);

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
