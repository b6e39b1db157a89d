// Other processes of this machine.
#pragma once

#include <sys/types.h>

namespace abtrain {

// Whether a signal such as SIGSTOP has stopped the process; false if /proc does not show it.
bool is_stopped(pid_t process);

}  // namespace abtrain
