// What the program's exit codes mean: those of ErrorKind, and three more.
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

constexpr std::array<ExitCode, 11> kExitCodes{
    ExitCode{0, "done"},
    ExitCode{1, "an error inside abtrain: please report it"},
    exit_code(ErrorKind::Usage, "wrong use of the command line"),
    exit_code(ErrorKind::DamagedData, "an input is damaged"),
    exit_code(ErrorKind::MissingInput, "an input is missing"),
    exit_code(
        ErrorKind::PeerLost,
        "another worker is gone, or a collective operation timed out"),
    exit_code(ErrorKind::Diverged, "a loss or weight is not finite any more"),
    exit_code(ErrorKind::Io, "reading or writing failed"),
    exit_code(
        ErrorKind::Stopped,
        "stopped by a signal, all saved: `--resume auto` goes on; or another "
        "process trains in the run folder"),
    exit_code(ErrorKind::Config, "the configuration is wrong"),
    ExitCode{130, "stopped at once by a second signal"}};

}  // namespace abtrain
