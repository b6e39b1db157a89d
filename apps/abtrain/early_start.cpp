// Catches signals before anything else runs. Most of the program's start-up time goes to the
// initialization of LibTorch's libraries; the functions in .preinit_array run before that. No
// library is ready then, so only system calls are used. Where this is impossible, main() does the
// same.
#include "base/signals.h"

namespace {

// Sanitizers are not ready either.
__attribute__((no_sanitize("address", "thread", "undefined"))) void begin(
    int /*argc*/, char** /*argv*/, char** /*environment*/) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  abtrain::catch_signals();
#endif
}

__attribute__((section(".preinit_array"), used)) void (*const first)(int, char**, char**) = begin;

}  // namespace
