#include "base/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace abtrain {

namespace {

constexpr std::array<int, 3> kSignals{SIGTERM, SIGINT, SIGUSR1};

std::atomic<int> first_signal{0};
std::atomic<bool> caught_early{false};
std::array<struct sigaction, kSignals.size()> before;
sighandler_t before_pipe = SIG_DFL;

// Schedulers send SIGUSR1 and then SIGTERM, or SIGTERM more than once. A second signal means "now"
// only from a person at the keyboard.
void on_signal(int number) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number) && number == SIGINT) {
    ::_exit(128 + number);
  }
}

void take_over() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &before[i]);
  }
}

void give_back() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before[i], nullptr);
  }
}

}  // namespace

void catch_signals() {
  if (!caught_early.exchange(true)) {
    take_over();
    ::signal(SIGXFSZ, SIG_IGN);
    before_pipe = ::signal(SIGPIPE, SIG_IGN);
  }
}

void release_signals() {
  if (caught_early.exchange(false)) {
    give_back();
    ::signal(SIGPIPE, before_pipe);
    if (const int number = first_signal.exchange(0); number != 0) {
      ::raise(number);
    }
  }
}

StopSignals::StopSignals() {
  if (!caught_early.exchange(false)) {
    take_over();
  }
}

StopSignals::~StopSignals() {
  give_back();
  first_signal = 0;
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
