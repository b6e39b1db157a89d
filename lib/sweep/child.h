// A program that runs beside this one, ends with it, and writes into a log.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::sweep {

class Child {
 public:
  // Starts `command` (a path and its arguments) in a process group of its own,
  // so that a Ctrl-C reaches it through us alone, on `cores` only (none: all of
  // ours). The kernel kills it should we be gone. What it prints is appended to
  // `log` ("": it has our streams), which stays locked while it runs: null
  // where the lock of another process is on it. Error(Io) where it cannot be
  // started.
  static std::unique_ptr<Child> start(
      const std::vector<std::string>& command,
      const std::string& log,
      const std::vector<int>& cores);
  // Kills one that still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The exit code once it has ended, 128 + N where signal N ended it.
  std::optional<int> ended();
  int wait();
  void send(int signal) const;

 private:
  explicit Child(pid_t id) : id_(id) {}

  pid_t id_;
  std::optional<int> code_;
};

// Cores for the child in `slot` of `slots`: an equal share of those that this
// process may use, none where it has them all to itself.
std::vector<int> cores_of_slot(std::size_t slot, std::size_t slots);

}  // namespace abtrain::sweep
