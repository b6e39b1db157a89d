// Answers `abtrain --version` and catches signals before anything else.
// LibTorch's libraries take most of the time that a start takes, to initialize
// themselves; the functions in .preinit_array come before that. No library is
// ready then, so only system calls are used. What cannot be done here, main()
// does.
#include <unistd.h>

#include <string_view>

#include "base/signals.h"
#include "build_config.h"
#include "build_revision.h"

namespace {

constexpr std::string_view kParts[] = {
    "abtrain ",
    abtrain::build_config::kVersion,
    *abtrain::build_config::kRevision == '\0' ? "" : " (",
    abtrain::build_config::kRevision,
    *abtrain::build_config::kRevision == '\0' ? "\n" : ")\n"};

// Sanitizers are not ready either.
__attribute__((no_sanitize("address", "thread", "undefined"))) void
answer_version(int argc, char** argv) {
  constexpr char kAsked[] = "--version";
  if (argc != 2) {
    return;
  }
  for (unsigned i = 0; i < sizeof(kAsked); ++i) {
    if (argv[1][i] != kAsked[i]) {
      return;
    }
  }
  char text[256];
  unsigned size = 0;
  for (const std::string_view& part : kParts) {
    for (unsigned i = 0; i < part.size() && size < sizeof(text); ++i) {
      text[size++] = part.data()[i];
    }
  }
  if (write(STDOUT_FILENO, text, size) == static_cast<ssize_t>(size)) {
    _exit(0);
  }
}

__attribute__((no_sanitize("address", "thread", "undefined"))) void
begin(int argc, char** argv, char** /*environment*/) {
  answer_version(argc, argv);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  abtrain::catch_signals();
#endif
}

__attribute__((
    section(".preinit_array"),
    used)) void (*const first)(int, char**, char**) = begin;

}  // namespace
