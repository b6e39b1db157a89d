// Other processes of this machine.
#pragma once

#include <sys/types.h>

namespace abtrain {

// Whether a signal has stopped the process; false too if it is hidden or gone.
bool is_stopped(pid_t process);

}  // namespace abtrain
