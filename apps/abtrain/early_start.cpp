// Catches signals before anything else. LibTorch's libraries take most of the
// time that a start takes, to initialize themselves; the functions in
// .preinit_array come before that. No library is ready then, so only system
// calls are used. main() does the same where this cannot be done.
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
