// The lock of a run folder: lock.json says who trains in it and since when, and
// a counter in it grows every few seconds while that process is alive. All it
// asks of the file system is that a name can be linked only once, so it works
// where flock does not (NFS, Lustre).
//
// On the holder's own machine the kernel tells whether the holder is alive; if
// it is, it gets a few seconds to end. The clock of another host is not trusted:
// a holder there is watched, and counts as dead once its counter has not changed
// for a minute. A file that names no holder is watched for a few heartbeats
// only: either it is being written or it belongs to nobody, since a process that
// does not find its own lock gives up the folder. If several processes find a
// holder dead, the one that creates lock-<id of that holder>.json takes over.
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
  double beat = 3;    // seconds between two heartbeats
  double stale = 60;  // seconds without one after which a holder is dead
  double ending = 5;  // seconds for which a holder on this machine may be ending
};

class RunLock {
 public:
  // Creates the folder if it is missing and takes its lock. If only watching
  // can tell whether the holder is alive, logs that and waits. Throws
  // Error(Stopped), exit code 75, naming a holder that is alive.
  RunLock(std::string folder, Log& log, LockTimes times = {});
  // Releases the lock, and removes the folder if it was created here and is
  // still empty.
  ~RunLock();

  // Throws Error(Io) if the lock is lost: removed, maybe with its folder, or
  // taken over while this process was stopped. Reads the file only if the last
  // look was a while ago, or if `now` is set.
  void check(bool now = false);
  // Gives the lock back; does nothing if it is not held or is lost.
  void release() noexcept;

 private:
  bool try_take(Log& log);
  bool is_dead(const LockFile& found, Log& log);
  void beat();

  std::string folder_;
  LockTimes times_;
  LockHolder me_;
  bool made_folder_ = false;
  bool waited_ = false;
  std::timed_mutex mutex_;  // guards held_, beats_ and lost_
  bool held_ = false;
  std::int64_t beats_ = 0;
  std::string lost_;  // why the lock was lost; "" while it is not
  std::atomic<double> fresh_until_{0};
  std::mutex sleep_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

// These act on the lock that this process holds; without one they do nothing. A
// process trains one run, and whatever ends it early, in whatever thread,
// releases the lock first.
void check_run_lock(bool now = false);
void release_run_lock() noexcept;
// Whether this process held the lock and lost it: the folder then belongs to
// another process.
bool lost_run_lock() noexcept;

}  // namespace abtrain::run_folder
