#include "run_folder/run_lock.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"

namespace abtrain::run_folder {

namespace {

namespace fs = std::filesystem;

constexpr int kTries = 200;
constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::milliseconds kPatience{300};

// For how many heartbeats to watch a lock that names no holder.
constexpr double kUnnamedBeats = 3;

std::timed_mutex registry_mutex;
RunLock* registered = nullptr;
std::atomic<bool> any_lost{false};

// Includes the time for which the machine was suspended.
double now_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void pause_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

[[noreturn]] void refuse(const std::string& folder, const LockHolder& holder) {
  throw Error(
      ErrorKind::Stopped, formatted(
                              "{} is in use: {} has been training in it{}. Wait for it to end{}, "
                              "or choose another --name",
                              folder, name_of(holder),
                              holder.started.empty() ? "" : formatted(" since {}", holder.started),
                              holder.pid == 0 ? ""
                                              : formatted(
                                                    ", stop it there with `kill {}` (it saves a "
                                                    "checkpoint first)",
                                                    holder.pid)));
}

}  // namespace

RunLock::RunLock(std::string folder, Log& log, LockTimes times)
    : folder_(std::move(folder)), times_(times), me_(this_process()) {
  made_folder_ = ::access(folder_.c_str(), F_OK) != 0;
  make_folders(folder_);
  for (int tries = 1; !try_take(log); ++tries) {
    ABT_CHECK(
        tries < kTries, Stopped,
        "{} is in use: other processes are taking and releasing its lock; try "
        "again",
        folder_);
    std::this_thread::sleep_for(kPause);
    make_folders(folder_);  // whoever created it may have removed it
  }
  // Incomplete locks of processes that were killed, and claims on earlier
  // locks.
  const fs::path own = claim_on(folder_, me_);
  for (const fs::path& entry : list_folder(folder_)) {
    const std::string name = entry.filename().string();
    if (name.starts_with("lock-") && name != own.filename().string()) {
      ::unlink(entry.c_str());
    }
  }
  held_ = true;
  fresh_until_ = now_seconds() + 3 * times_.beat;
  {
    const std::lock_guard lock(registry_mutex);
    registered = this;
    any_lost = false;
  }
  thread_ = std::jthread([this](const std::stop_token& stop) {
    for (;;) {
      std::unique_lock lock(sleep_);
      wake_.wait_for(lock, stop, std::chrono::duration<double>(times_.beat), [] { return false; });
      if (stop.stop_requested()) {
        return;
      }
      lock.unlock();
      const std::lock_guard guard(mutex_);
      beat();
    }
  });
}

RunLock::~RunLock() {
  {
    const std::lock_guard lock(registry_mutex);
    if (registered == this) {
      registered = nullptr;
    }
  }
  thread_.request_stop();
  thread_.join();
  release();
}

bool RunLock::try_take(Log& log) {
  const std::string place = lock_in(folder_);
  const auto found = find_holder(folder_);
  if (!found) {
    return create_lock(place, me_);
  }
  if (!is_dead(*found, log)) {
    return false;
  }
  const std::string claim = claim_on(folder_, found->holder);
  if (!create_lock(claim, me_)) {
    return false;  // another process was faster
  }
  // The claim counts only if nobody intervened.
  const auto now = find_holder(folder_);
  if (!now || now->holder.id != me_.id) {
    ::unlink(claim.c_str());
    return false;
  }
  if (uninterrupted([&] { return ::rename(claim.c_str(), place.c_str()); }) != 0) {
    return false;
  }
  log.info("{}: {} ended without releasing its lock: taking over", folder_, name_of(found->holder));
  return true;
}

// Whether the holder is dead. Throws if it is alive; returns false if something
// changed meanwhile.
bool RunLock::is_dead(const LockFile& found, Log& log) {
  const LockHolder& holder = found.holder;
  if (is_on_machine(holder, me_)) {
    // A launcher that reports a failure may be faster than its last process.
    for (double waited = 0; is_alive(holder); waited += times_.beat / 30) {
      if (waited >= times_.ending) {
        refuse(folder_, holder);
      }
      pause_for(times_.beat / 30);
      const auto now = read_lock(found.path);
      if (!now || now->holder.id != holder.id) {
        return false;
      }
    }
    return true;
  }
  const bool is_named = holder.pid > 0;
  const double stale =
      is_named ? times_.stale : std::min(times_.stale, kUnnamedBeats * times_.beat);
  if (!std::exchange(waited_, true)) {
    if (is_named) {
      log.info(
          "{}: locked by {}{}. Watching it for {} s to see whether it is still "
          "alive",
          folder_, name_of(holder),
          holder.started.empty() ? "" : formatted(" since {}", holder.started), stale);
    } else {
      log.info(
          "{} is empty or damaged, and names nobody who holds the folder. "
          "Watching it for {} s to see whether a process writes to it",
          found.path, stale);
    }
  }
  // Counts looks rather than time, so that a hanging file system does not make
  // the holder look dead.
  const double between = times_.beat / 3;
  const auto looks = static_cast<int>(std::ceil(stale / between));
  for (int look = 0; look < looks; ++look) {
    pause_for(between);
    const auto now = read_lock(found.path);
    if (!now || now->holder.id != holder.id) {
      return false;
    }
    if (now->text != found.text) {
      refuse(folder_, holder);
    }
  }
  return true;
}

void RunLock::beat() {
  if (!held_ || !lost_.empty()) {
    return;
  }
  const auto lose = [&](const std::string& why) {
    lost_ = why;
    any_lost = true;
  };
  const std::string path = lock_in(folder_);
  try {
    const auto found = beat_lock(path, me_, ++beats_);
    const auto claim = read_lock(claim_on(folder_, me_));
    if (!found) {
      lose(formatted("{} is gone", path));
    } else if (found->holder.id != me_.id) {
      lose(formatted("{} has taken over the folder", name_of(found->holder)));
    } else if (claim) {
      lose(formatted("{} is taking over the folder", name_of(claim->holder)));
    } else {
      fresh_until_ = now_seconds() + 3 * times_.beat;
    }
  } catch (const Error& error) {
    // The error may pass, but lose the lock before others could think this
    // process dead.
    if (now_seconds() > fresh_until_ + times_.stale / 3) {
      lose(error.what());
    }
  }
}

void RunLock::check(bool now) {
  if (!now && !any_lost && now_seconds() < fresh_until_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  beat();
  ABT_CHECK(
      lost_.empty(), Io,
      "this run has lost its folder {}: {}. It ends here and writes nothing "
      "more",
      folder_, lost_);
}

void RunLock::release() noexcept {
  const std::unique_lock lock(mutex_, kPatience);
  if (!lock || !std::exchange(held_, false) || !lost_.empty()) {
    return;
  }
  try {
    // Whoever takes over creates the same name, so only one of the two
    // proceeds.
    const std::string place = lock_in(folder_);
    const std::string claim = claim_on(folder_, me_);
    if (create_lock(claim, this_process())) {
      const auto found = read_lock(place);
      if (found && found->holder.id == me_.id) {
        ::unlink(place.c_str());
      }
      ::unlink(claim.c_str());
    }
    if (made_folder_) {
      ::rmdir(folder_.c_str());
    }
  } catch (...) {
    // Others will find this holder dead later.
  }
}

void check_run_lock(bool now) {
  const std::lock_guard lock(registry_mutex);
  if (registered != nullptr) {
    registered->check(now);
  }
}

void release_run_lock() noexcept {
  const std::unique_lock lock(registry_mutex, kPatience);
  if (lock && registered != nullptr) {
    registered->release();
  }
}

bool lost_run_lock() noexcept {
  return any_lost;
}

}  // namespace abtrain::run_folder
