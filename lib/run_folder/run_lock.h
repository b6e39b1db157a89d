// The lock of a run folder. The file lock.json names the process that trains in the folder. That
// process holds a lock on the open file (F_OFD_SETLK), which the kernel releases however the
// process ends. On NFS and Lustre the lock is valid on all hosts. A lock.json without a lock was
// left by a process that was killed.
//
// A holder that finds no lock.json, or another process's text in it, has lost the folder: the file
// was removed, a server gave up the lock of a host that it could not reach, or the file system has
// no locks and a second program has started.
#pragma once

#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/log.h"

namespace abtrain::run_folder {

class RunLock {
 public:
  // Creates the folder if it is missing and takes its lock. Waits up to `patience` seconds for a
  // holder that is about to end; if it still holds the lock, throws Error(Stopped), exit code 75,
  // naming it. Warns if the file system has no locks.
  RunLock(std::string folder, Log& log, double patience = 5);
  // Releases the lock, and removes the folder if it was created here and is
  // still empty.
  ~RunLock();

  // Throws Error(Io) if the lock is lost.
  void check() const;
  // Removes the file; does nothing if the lock is released or lost.
  void release() noexcept;

 private:
  bool try_take(Log& log);
  std::string why_lost() const;

  std::string folder_;
  std::string path_;
  std::string text_;  // that this process writes to the file
  bool made_folder_ = false;
  Descriptor file_;  // open while the lock is held
};

// These functions act on the lock that this process holds; if it holds none, they do nothing. A
// process trains one run. Code that ends it early, on any thread, must first release the lock.
void check_run_lock();
void release_run_lock() noexcept;
// Whether a check has found that the lock is lost: the folder then belongs to
// another process.
bool lost_run_lock() noexcept;
// Takes the lock away from a process that is known to be gone. If the process is alive after all,
// it loses the folder.
void break_run_lock(const std::string& folder);

struct LockSeen {
  std::string holder;           // "process 123 on host, since 2026-01-02T03:04:05Z"
  std::optional<bool> is_held;  // nullopt: the file system does not tell
};
// Returns the state of a folder's lock, as any process sees it; nullopt if there is no lock file.
std::optional<LockSeen> look_at_lock(const std::string& folder);

}  // namespace abtrain::run_folder
