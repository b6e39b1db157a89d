// Stands in for kernels/launch.cuh, so that the same .cu files run on the host:
// one block after the other, its threads in turn up to each barrier. Under a
// sanitizer they are threads of the host: it then sees what compute-sanitizer
// would see on a GPU.
//
// It is stricter than a GPU: shared memory is as large as was asked for and
// full of 0xff in each block, and a copy to it appears at wait_for_copies(),
// not before. It does not emulate several blocks at a time, and of atomics only
// increment().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "emulation/block.h"

#define __launch_bounds__(...)

namespace abtrain::kernels {

inline thread_local emulation::Index threadIdx, blockIdx, blockDim, gridDim;
// Null in a kernel that asked for no shared memory.
inline thread_local emulation::BlockMember* this_thread = nullptr;

inline emulation::BlockMember& member() {
  if (this_thread == nullptr) {
    throw std::logic_error(
        "a kernel that was launched with no shared memory uses it, or a "
        "barrier");
  }
  return *this_thread;
}

inline unsigned char* shared_memory() {
  return member().shared_memory();
}

inline void synchronize(bool block) {
  emulation::BlockMember& self = member();
  const emulation::Index thread = threadIdx;
  self.synchronize(block);  // others may have run in this thread of the host
  this_thread = &self;
  threadIdx = thread;
}
inline void __syncthreads() {
  synchronize(true);
}
inline void sync_warp() {
  synchronize(false);
}

inline void copy_16_bytes(void* shared, const void* global) {
  member().copy_later(shared, global, 16);
}

inline void wait_for_copies() {
  member().copy_now();
}

inline void increment(std::uint32_t* counter) {
  std::atomic_ref(*counter).fetch_add(1, std::memory_order_relaxed);
}

inline float divide(float a, float b) {
  return a / b;
}

// Done on return. A kernel without shared memory has no barriers: its threads
// run one after another.
template <class... Parameters, class... Arguments>
int launch(
    void (*kernel)(Parameters...), std::int64_t blocks, int threads, std::size_t shared_bytes,
    void* /*stream*/, Arguments... arguments) {
  if (blocks == 0) {
    return 0;
  }
  if (!emulation::is_valid(blocks, threads, shared_bytes)) {
    return 9;  // cudaErrorInvalidConfiguration
  }
  const auto run = [&](unsigned block, unsigned thread) {
    threadIdx = {thread};
    blockIdx = {block};
    blockDim = {static_cast<unsigned>(threads)};
    gridDim = {static_cast<unsigned>(blocks)};
    kernel(arguments...);
  };
  if (shared_bytes == 0) {
    this_thread = nullptr;
    emulation::run_in_a_loop(blocks, threads, run);
  } else {
    emulation::run_together(
        blocks, threads, shared_bytes,
        [&](unsigned block, unsigned thread, emulation::BlockMember& self) {
          this_thread = &self;
          run(block, thread);
        });
  }
  return 0;
}

}  // namespace abtrain::kernels
