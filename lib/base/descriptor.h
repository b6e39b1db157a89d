// File descriptors.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace abtrain {

// Owns a file descriptor and closes it when destroyed. Move-only.
class Descriptor {
 public:
  Descriptor() = default;  // none
  explicit Descriptor(int file) : file_(file) {}
  Descriptor(Descriptor&& other) noexcept : file_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Descriptor() {
    if (is_open()) {
      ::close(file_);
    }
  }

  bool is_open() const {
    return file_ >= 0;
  }
  int get() const {
    return file_;
  }
  // Gives up ownership.
  int release() noexcept {
    return std::exchange(file_, -1);
  }

 private:
  int file_ = -1;
};

// Repeats a system call as long as signals interrupt it, and returns its result. On some network
// file systems, a signal can interrupt every call on a file, even stat(). Not for close(), which
// frees the descriptor even if it is interrupted.
template <class Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) {
      return result;
    }
  }
}

// Writes all bytes. On failure, returns false with the reason in errno.
inline bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(file, bytes.data(), bytes.size()); });
    if (written < 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace abtrain
