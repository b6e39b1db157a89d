// The file with which a process holds a run folder, and how to tell whether
// that process is alive. Internal to run_folder/run_lock and run_state.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace abtrain::run_folder {

struct LockHolder {
  std::string id = {};       // never used twice
  std::string host = {};     // host name, for people
  std::string machine = {};  // boot and PID namespace; "" if unknown
  pid_t pid = 0;             // 0: the file does not tell
  std::string ticks = {};    // start time as in /proc, since PIDs are reused
  std::string started = {};  // UTC, for people
};

// This process, with a new id.
LockHolder this_process();
// Whether both are processes of one machine, as far as the lock tells.
bool is_on_machine(const LockHolder& holder, const LockHolder& me);
// Whether the process is alive. It must be one of this machine.
bool is_alive(const LockHolder& holder);
// "process 123 on host"
std::string name_of(const LockHolder& holder);

struct LockFile {
  std::string path;
  std::string text;  // changes with each heartbeat
  LockHolder holder;
};

// <folder>/lock.json
std::string lock_in(const std::string& folder);
// <folder>/lock-<id>.json: whoever creates it takes over from that holder.
std::string claim_on(const std::string& folder, const LockHolder& holder);

// The functions below throw Error(Io). Those that return a LockFile return
// nullopt if the file does not exist.
std::optional<LockFile> read_lock(const std::string& path);
// The holder of the folder: the process in lock.json, or whoever is taking over
// from it, followed along the chain of takeovers.
std::optional<LockFile> find_holder(const std::string& folder);
// False if the name exists already, or the folder does not.
bool create_lock(const std::string& path, const LockHolder& holder);
// Writes a heartbeat into the file if it belongs to this holder. Returns what
// was there before.
std::optional<LockFile> beat_lock(
    const std::string& path, const LockHolder& holder, std::int64_t beat);

}  // namespace abtrain::run_folder
