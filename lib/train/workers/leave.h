// Ending the process from any thread, while others may hang in a collective.
#pragma once

namespace abtrain::train {

// Releases the run folder, writes out buffered output, and ends the process without running
// destructors.
[[noreturn]] void leave(int code);

}  // namespace abtrain::train
