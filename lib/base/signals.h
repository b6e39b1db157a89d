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

// Call it at program start, before the libraries are ready: records these signals for a later
// StopSignals. Also ignores SIGPIPE and SIGXFSZ, so that a write fails, as on a full disk, if
// nobody reads it or the file would exceed the size limit.
void catch_signals();
// Call it if no StopSignals will follow: all these signals but SIGXFSZ have their usual effect
// again, including a recorded one.
void release_signals();

// "SIGTERM"
const char* signal_name(int number);

}  // namespace abtrain
