// A child process that writes to a log file and ends no later than its parent.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::sweep {

class ChildProcess {
 public:
  // Starts `command` (a path and its arguments), restricted to `cores` (empty: all cores of this
  // process). The child has a process group of its own, so that Ctrl-C reaches it only through this
  // process, and the kernel kills it if this process dies. Its output is appended to `log`, which
  // stays locked while it runs. Returns null if another process holds that lock; throws Error(Io)
  // if the child cannot be started.
  static std::unique_ptr<ChildProcess> start(
      const std::vector<std::string>& command, const std::string& log,
      const std::vector<int>& cores);
  // Kills the child if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The exit code once the child has ended, or 128 + N if signal N ended it; empty while it runs.
  std::optional<int> ended();
  void send(int signal) const;

 private:
  explicit ChildProcess(pid_t id) : id_(id) {}

  pid_t id_;
  std::optional<int> code_;
};

// Returns the cores for the child in `slot`, 0 to slots - 1: an equal share of the cores that this
// process may use. Empty (no restriction) if there is one slot.
std::vector<int> cores_of_slot(std::size_t slot, std::size_t slots);

}  // namespace abtrain::sweep
