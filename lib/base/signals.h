// SIGTERM, SIGINT and SIGUSR1 as a request to stop. Handlers are the process's,
// so this is one of the few places with state of its own.
#pragma once

namespace abtrain {

// While it lives the first such signal is only noted; a second SIGTERM or SIGINT
// ends the process at once with 128 + its number.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  // Number of the first signal that came, 0 while none has.
  static int requested();
};

// "SIGTERM"
const char* signal_name(int number);

}  // namespace abtrain
