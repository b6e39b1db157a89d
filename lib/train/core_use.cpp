#include "train/core_use.h"

#include <algorithm>
#include <ctime>
#include <map>

#include "base/text.h"
#include "device/devices.h"

namespace abtrain::train {

namespace {

// A run lacks no cores if it has at least this fraction of the core time that its configuration
// implies.
constexpr double kEnough = 0.9;
constexpr double kMoment = 0.25;  // seconds; shorter measurements show nothing

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Sums over the workers of a host.
struct Host {
  double workers = 0;
  CoreTime time;
  double busy = 0;                // cores kept busy by all processes
  std::map<double, double> sets;  // sets of cores: first core, number of cores
};

}  // namespace

CoreWatch::CoreWatch(bool measures) : measures_(measures) {
  if (measures_) {
    time_.cores = device::core_limit();
    time_.first_core = device::first_core();
  }
}

void CoreWatch::begin() {
  if (measures_) {
    begun_.wall = seconds_of(CLOCK_MONOTONIC);
    begun_.thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    begun_.process = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  }
}

void CoreWatch::end() {
  if (measures_) {
    time_.process += seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begun_.process;
    time_.thread += seconds_of(CLOCK_THREAD_CPUTIME_ID) - begun_.thread;
    time_.wall += seconds_of(CLOCK_MONOTONIC) - begun_.wall;
  }
}

bool CoreUse::beside_others() const {
  return seconds >= kMoment && share < kEnough * implied && own < kEnough;
}

std::string CoreUse::warning() const {
  return formatted(
      "workers{} had a core for {:.0f} % of their compute time: other programs run on {}, so "
      "times, and the steps that `abtrain rivals` chooses by them, are not reliable",
      host.empty() ? "" : " on " + host, 100 * share, host.empty() ? "this machine" : "that host");
}

std::optional<CoreUse> core_use(
    const std::vector<CoreTime>& times, const std::vector<std::string>& hosts, int threads,
    int in_process) {
  std::map<std::string, Host> all;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const CoreTime& time = times[i];
    if (!(time.wall > 0)) {
      return std::nullopt;
    }
    Host& host = all[i < hosts.size() ? hosts[i] : ""];
    ++host.workers;
    host.time.wall += time.wall;
    host.time.thread += time.thread;
    host.busy += time.process / time.wall / in_process;
    host.sets[time.first_core] = time.cores;
  }
  std::optional<CoreUse> worst;
  for (const auto& [name, host] : all) {
    double cores = 0;
    for (const auto& [first, count] : host.sets) {
      cores += count;
    }
    const CoreUse use{
        .share = std::min(1.0, host.time.thread / host.time.wall),
        .implied = std::min(1.0, cores / (host.workers * threads)),
        .own = std::min(1.0, host.busy / cores),
        .seconds = host.time.wall / host.workers,
        .host = all.size() > 1 ? name : ""};
    if (!worst || use.share / use.implied < worst->share / worst->implied) {
      worst = use;
    }
  }
  return worst;
}

}  // namespace abtrain::train
