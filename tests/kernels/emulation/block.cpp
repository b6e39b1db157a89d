#include "emulation/block.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace abtrain::kernels::emulation {

void BlockMember::copy_later(void* to, const void* from, std::size_t bytes) {
  for (const void* pointer : {static_cast<const void*>(to), from}) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % bytes != 0) {
      throw std::logic_error("a copy from or to an unaligned address");
    }
  }
  copies_.push_back({to, from, bytes});
}

void BlockMember::copy_now() {
  for (const Copy& copy : copies_) {
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
  copies_.clear();
}

void BlockMember::end() {
  if (!copies_.empty()) {
    throw std::logic_error("a thread ended before its copies");
  }
}

bool is_valid(std::int64_t blocks, int threads, std::size_t shared_bytes) {
  return blocks >= 1 && blocks <= INT32_MAX && threads >= 1 && threads <= 1024 &&
         shared_bytes <= 48 * 1024;
}

void run_in_a_loop(
    std::int64_t blocks, int threads,
    const std::function<void(unsigned block, unsigned thread)>& body) {
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (int thread = 0; thread < threads; ++thread) {
      body(static_cast<unsigned>(block), static_cast<unsigned>(thread));
    }
  }
}

}  // namespace abtrain::kernels::emulation
