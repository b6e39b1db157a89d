#include "base/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace abtrain {

namespace {

constexpr std::array<int, 3> kSignals{SIGTERM, SIGINT, SIGUSR1};

std::atomic<int> first_signal{0};
std::array<struct sigaction, kSignals.size()> before;

// Schedulers send SIGUSR1 and then SIGTERM, and SIGTERM more than once. Only a
// person at the keyboard means "now" with a second signal.
void on_signal(int number) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number) &&
      number == SIGINT) {
    ::_exit(128 + number);
  }
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &before[i]);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before[i], nullptr);
  }
}

int StopSignals::requested() {
  return first_signal;
}

const char* signal_name(int number) {
  switch (number) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "a signal";
  }
}

}  // namespace abtrain
