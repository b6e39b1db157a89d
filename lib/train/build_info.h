// The version of this program and what was compiled in. A part that is not
// compiled in has an empty version.
#pragma once

#include <string>

namespace abtrain::train {

struct BuildInfo {
  std::string version;     // "0.1.0"
  std::string build_type;  // "Release"
  std::string compiler;    // "GNU 12.2.0"
  std::string torch;       // LibTorch, "2.11.0"
  std::string cuda;        // the toolkit used to compile, "13.0.88"
  std::string mpi;         // those that can be loaded, "Open MPI, MPICH"
};

BuildInfo build_info();

// "0.1.0 (6d0915b1c2)": with the revision of git, "-dirty" if files were changed.
std::string version_line();

}  // namespace abtrain::train
