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
    mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // the most of an older glibc
  }
  mallopt(M_TRIM_THRESHOLD, 1024 * kMiB);
  // Threads' own arenas hold 64 MiB at most; what is larger would be mapped.
  mallopt(M_ARENA_MAX, 1);
#endif
}

void return_freed_memory() {
#ifdef __GLIBC__
  // Unset it grows with every block that is freed, and their space stays.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

}  // namespace abtrain::device
