// The file by which a process holds a run folder, and what tells whether that
// process is alive. Internal to run_folder/run_lock.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace abtrain::run_folder {

struct LockHolder {
  std::string id;       // never used twice
  std::string host;     // its name, for people
  std::string machine;  // boot and process namespace; "" where unknown
  pid_t pid = 0;        // 0: the file does not say
  std::string ticks;    // start of the process as in /proc: pids are reused
  std::string started;  // UTC, for people
};

// This process, with a new id.
LockHolder this_process();
LockHolder with_new_id(LockHolder holder);
// Whether the process, which is one of this machine, is there.
bool lives(const LockHolder& holder);
// "process 123 on host"
std::string name_of(const LockHolder& holder);

struct LockFile {
  std::string path;
  std::string text;  // changes with each beat
  LockHolder holder;
};

// <folder>/lock.json
std::string lock_in(const std::string& folder);
// <folder>/lock-<id>.json: who creates it takes over from that holder.
std::string claim_on(const std::string& folder, const LockHolder& holder);

// These throw Error(Io). Nothing: the file is not there.
std::optional<LockFile> read_lock(const std::string& path);
// Who holds the folder: the one in lock.json, or who is taking over from that
// one, or from that one again.
std::optional<LockFile> find_holder(const std::string& folder);
// False where the name is there already, or the folder is not.
bool create_lock(const std::string& path, const LockHolder& holder);
// Writes a sign of life into the file where it is this holder's. Returns what
// was there.
std::optional<LockFile>
beat_lock(const std::string& path, const LockHolder& holder, std::int64_t beat);

}  // namespace abtrain::run_folder
