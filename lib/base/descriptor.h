// A file descriptor that is closed with its owner. Move-only.
#pragma once

#include <unistd.h>

#include <utility>

namespace abtrain {

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
    if (file_ >= 0) {
      ::close(file_);
    }
  }

  int get() const {
    return file_;
  }
  // The caller must close it.
  int release() noexcept {
    return std::exchange(file_, -1);
  }

 private:
  int file_ = -1;
};

}  // namespace abtrain
