// Hands over to the Python module abtrain (python/abtrain) where only Python can do the work.
#pragma once

#include <string>
#include <vector>

namespace abtrain::app {

// Replaces this process by `python -m MODULE ARGUMENTS...`, so that signals and the exit code are
// Python's; no destructor runs. The Python is the first of these: $ABTRAIN_PYTHON, which the
// wheel's launcher sets; the one in whose environment LibTorch lies; `python3` of the PATH. The
// module is the one beside the program. Throws Error(MissingInput) if there is no Python.
[[noreturn]] void become_python_module(
    const std::string& module, const std::vector<std::string>& arguments);

}  // namespace abtrain::app
