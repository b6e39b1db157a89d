// SIGTERM, SIGINT and SIGUSR1 as requests to stop. Signal handlers belong to
// the process, so this is one of the few places with global state.
#pragma once

namespace abtrain {

// While this object exists, these signals are only recorded. But a SIGINT that is not the first of
// them ends the process at once, with exit code 128 + SIGINT.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  // The number of the first signal received, or 0 if there was none or the StopSignals object has
  // been destroyed.
  static int requested();
};

// Call it at program start, even before libraries are initialized: records these signals for a
// later StopSignals. Also ignores SIGPIPE and SIGXFSZ: a write to a closed pipe or beyond the file
// size limit then fails with an error, as on a full disk.
void catch_signals();
// Call it if no StopSignals will follow: restores the effect of these signals, except SIGXFSZ, and
// raises a recorded one again.
void release_signals();

// "SIGTERM"
const char* signal_name(int number);

}  // namespace abtrain
