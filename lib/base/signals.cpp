#include "base/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace abtrain {

namespace {

constexpr std::array<int, 3> kSignals{SIGTERM, SIGINT, SIGUSR1};

std::atomic<int> first_signal{0};
std::atomic<int> insistent{0};  // of SIGTERM and SIGINT
std::array<struct sigaction, kSignals.size()> before;

// A scheduler sends SIGUSR1 and later SIGTERM: only the second of the stronger
// kind means "now".
void on_signal(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  if (number != SIGUSR1 && insistent.fetch_add(1) > 0) {
    ::_exit(128 + number);
  }
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  insistent = 0;
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
