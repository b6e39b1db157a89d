// Other processes of this machine.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace abtrain {

struct ProcessState {
  char letter = ' ';       // R, S, T (stopped), Z, ... as in proc(5)
  bool has_ended = false;  // nobody has waited for it yet
  std::string started;     // clock ticks since the boot, which tell processes of one PID apart
};

// From /proc/PID/stat; nullopt if it is hidden or gone.
std::optional<ProcessState> process_state(pid_t pid);

}  // namespace abtrain
