// SIGTERM, SIGINT and SIGUSR1 as requests to stop. Signal handlers belong to
// the process, so this is one of the few places with global state.
#pragma once

namespace abtrain {

// While this object exists, these signals do not end the process; the first one is recorded. A
// SIGINT after the first signal still ends the process at once, with exit code 128 + SIGINT.
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

// Call this at program start, even before libraries are initialized: a stop signal from now on is
// recorded for a later StopSignals object. Also ignores SIGPIPE and SIGXFSZ: a write to a closed
// pipe or beyond the file size limit then fails with an error, as on a full disk.
void catch_signals();
// Undoes catch_signals(), except that SIGXFSZ stays ignored. If a stop signal has arrived
// meanwhile, raises it again. Call this if no StopSignals object will be created.
void release_signals();

// "SIGTERM"
const char* signal_name(int number);

}  // namespace abtrain
