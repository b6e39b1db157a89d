// Hands over to a file of the Python package abtrain (python/abtrain) for work that only Python can
// do.
#pragma once

#include <string>
#include <vector>

namespace abtrain::app {

// Replaces this process by `python FILE ARGUMENTS...`, so that signals and the exit code are
// Python's; no destructor runs. Uses the first Python of these: $ABTRAIN_PYTHON, which the wheel's
// launcher sets; the Python of the environment that contains LibTorch; `python3` in the PATH. The
// package lies beside the program. Throws Error(MissingInput) if there is no Python.
[[noreturn]] void become_python(
    const std::string& file, const std::vector<std::string>& arguments);

}  // namespace abtrain::app
