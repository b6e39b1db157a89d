// The lock of a run folder: lock.json says who trains in it and since when, and
// a number in it grows every few seconds while that process is alive. All it
// asks of the file system is that a name can be linked only once, so it works
// where flock does not (NFS, Lustre).
//
// On its own machine the kernel tells whether the holder is alive. The clock of
// another host is not trusted: a holder there is watched, and counts as dead
// once its number has stood still for a minute. Of several processes that find
// it dead one takes over: the one that creates lock-<id of that holder>.json.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "base/log.h"
#include "run_folder/lock_file.h"

namespace abtrain::run_folder {

struct LockTimes {
  double beat = 3;    // seconds between two signs of life
  double stale = 60;  // seconds of watching without one
};

class RunLock {
 public:
  // Makes the folder where it is missing and takes its lock. Throws
  // Error(Stopped), exit code 75, which names a holder that is alive. Where
  // only watching can tell it says so and waits.
  RunLock(std::string folder, Log& log, LockTimes times = {});
  // Gives it back, and removes the folder if it was made and is still empty.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Throws Error(Io) where the lock is lost: removed, maybe with the folder, or
  // taken over while this process was stopped. Looks at the file only where the
  // last look was a while ago, or with `now`.
  void check(bool now = false);
  void release() noexcept;

 private:
  bool try_take(Log& log);
  bool is_dead(const std::string& path, const LockHolder& holder, Log& log);
  void beat();

  std::string folder_;
  LockTimes times_;
  LockHolder me_;
  bool made_folder_ = false;
  bool waited_ = false;
  std::timed_mutex mutex_;  // of what follows
  bool held_ = false;
  std::int64_t beats_ = 0;
  std::string lost_;  // why
  std::atomic<double> fresh_until_{0};
  std::mutex sleep_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

// These are about the lock that this process holds; without one they do
// nothing. A process trains one run, and whatever ends it early, in whatever
// thread, gives the lock back first.
void check_run_lock(bool now = false);
void release_run_lock() noexcept;
// Whether it had one and lost it: the folder is another's then.
bool lost_run_lock() noexcept;

}  // namespace abtrain::run_folder
