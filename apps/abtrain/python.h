// Runs the Python module abtrain (python/abtrain) where only Python can do the work.
#pragma once

#include <string>
#include <vector>

namespace abtrain::app {

// Runs `python -m MODULE ARGUMENTS...` by the first of these: $ABTRAIN_PYTHON, which the wheel's
// launcher sets; the Python in whose environment LibTorch lies; `python3` of the PATH. The module
// is the one beside the program. Returns its exit code. Throws Error(MissingInput) if there is no
// Python.
int run_python_module(const std::string& module, const std::vector<std::string>& arguments);

}  // namespace abtrain::app
