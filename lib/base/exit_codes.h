// The meaning of the program's exit codes: those of ErrorKind, and those
// that others give it.
#pragma once

#include <array>

#include "base/error.h"

namespace abtrain {

struct ExitCode {
  int code;
  const char* meaning;
};

constexpr ExitCode exit_code(ErrorKind kind, const char* meaning) {
  return {static_cast<int>(kind), meaning};
}

constexpr std::array<ExitCode, 13> kExitCodes{
    ExitCode{0, "done"},
    ExitCode{1, "an error inside abtrain: please report it"},
    exit_code(ErrorKind::Usage, "invalid command line"),
    exit_code(ErrorKind::DamagedData, "an input is damaged"),
    exit_code(ErrorKind::MissingInput, "an input is missing"),
    exit_code(ErrorKind::PeerLost, "another worker is gone, or a collective operation timed out"),
    exit_code(
        ErrorKind::Diverged,
        "a loss or weight is no longer finite; the last checkpoint predates "
        "that"),
    exit_code(ErrorKind::Io, "reading or writing failed"),
    exit_code(
        ErrorKind::Stopped,
        "stopped by a signal with everything saved (`--resume auto` "
        "continues), or another process is training in the run folder"),
    exit_code(
        ErrorKind::Config,
        "the configuration is wrong, or needs more memory or threads than "
        "are available"),
    ExitCode{
        127,
        "the program did not start: the shell has not found it, or the system "
        "lacks one of its libraries, such as those of LibTorch, and names it"},
    ExitCode{130, "stopped at once by a second signal"},
    ExitCode{
        141,
        "nobody read what a command printed to the end, as in `abtrain plan "
        "CONFIG | head`; training is not ended by this"}};

}  // namespace abtrain
