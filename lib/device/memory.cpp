#include "device/memory.h"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace abtrain::device {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kMiB = 1 << 20;
  if (mallopt(M_MMAP_THRESHOLD, 256 * kMiB) == 0) {
    mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // the maximum of older versions
  }
  mallopt(M_TRIM_THRESHOLD, 1024 * kMiB);
  // A thread's own arena holds at most 64 MiB: larger blocks would be mapped.
  mallopt(M_ARENA_MAX, 1);
#endif
}

void return_freed_memory() {
#ifdef __GLIBC__
  // If it is not set, the threshold grows with each freed block that exceeds
  // it, and the memory of later blocks is kept.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

}  // namespace abtrain::device
