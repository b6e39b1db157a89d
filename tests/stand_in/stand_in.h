// What tests may ask of the stand-ins for GPUs and NCCL. The library is preloaded, not linked,
// so the functions are looked up at run time: without it they do nothing.
#pragma once

#include <dlfcn.h>

namespace abtrain::stand_in {

inline bool is_here() {
  return dlsym(RTLD_DEFAULT, "abtrain_stand_in_fail") != nullptr;
}

// The next `times` calls of this name fail, such as "cudaStreamEndCapture".
inline void fail(const char* call, int times) {
  if (void* function = dlsym(RTLD_DEFAULT, "abtrain_stand_in_fail")) {
    reinterpret_cast<void (*)(const char*, int)>(function)(call, times);
  }
}

// Within the library: whether this call is one of those.
bool fails(const char* call);

}  // namespace abtrain::stand_in
