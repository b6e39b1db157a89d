// The blocks of an emulated launch: threads that meet at barriers and share
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace abtrain::kernels::emulation {

struct Index {
  unsigned x = 0;
};

class Barrier;

// What one thread of the running block may do with the others.
class BlockMember {
 public:
  BlockMember(Barrier& barrier, unsigned thread, unsigned char* shared)
      : barrier_(barrier), thread_(thread), shared_(shared) {}
  unsigned char* shared_memory() const {
    return shared_;
  }
  // Returns when all threads of the block, or of this thread's warp of 32, that have
  // not ended are here.
  void synchronize(bool block);
  // Copies at copy_now(); both addresses must be multiples of `bytes`.
  void copy_later(void* to, const void* from, std::size_t bytes);
  void copy_now();
  // Of this thread in this block: throws where copies were not waited for.
  void end();

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  Barrier& barrier_;
  unsigned thread_;
  unsigned char* shared_;
  std::vector<Copy> copies_;
};

// Within what every GPU can do without further settings.
bool is_valid(std::int64_t blocks, int threads, std::size_t shared_bytes);

void run_in_a_loop(
    std::int64_t blocks, int threads,
    const std::function<void(unsigned block, unsigned thread)>& body);

// The threads of a block at a time, with barriers. Rethrows the first error of
// a thread; the others go on, or wait no longer.
void run_together(
    std::int64_t blocks, int threads, std::size_t shared_bytes,
    const std::function<void(unsigned block, unsigned thread, BlockMember& self)>& body);

}  // namespace abtrain::kernels::emulation
