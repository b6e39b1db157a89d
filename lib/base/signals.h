// SIGTERM, SIGINT and SIGUSR1 as requests to stop. Signal handlers belong to
// the process, so this is one of the few places with global state.
#pragma once

namespace abtrain {

// While this object exists, such a signal is only recorded. A SIGINT that
// follows any of them ends the process at once with exit code 128 + SIGINT.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  // The number of the first signal received, or 0 if there was none or no such
  // object exists any longer.
  static int requested();
};

// For the first moments of a program, before its libraries are ready: records
// these signals for the StopSignals to come. Also ignores SIGPIPE and SIGXFSZ,
// so that a write which nobody reads, or beyond the largest size of a file, is
// an error of its writer, as on a full disk.
void catch_signals();
// Where no StopSignals is to come: signals but SIGXFSZ have their usual effect
// again, also the one that was recorded.
void release_signals();

// "SIGTERM"
const char* signal_name(int number);

}  // namespace abtrain
