// Finds and loads an MPI library when one is first needed, so that one program runs with any Open
// MPI, any MPICH (including Intel MPI), and without MPI. One plug-in for Open MPI and one for MPICH
// (plugin.c) lie in lib/abtrain beside the program's folder.
#pragma once

#include <string>
#include <vector>

#include "comm/mpi/table.h"

namespace abtrain::comm {

struct MpiCandidate {
  std::string name;                    // "Open MPI"
  std::string plugin;                  // file name of its plug-in
  std::vector<std::string> libraries;  // file names, best first
};

struct MpiLibrary {
  const MpiTable* table = nullptr;
  std::string path;  // "libmpi.so.40", possibly with its folder
  // "Open MPI v4.1.4 (libmpi.so.40)", as the library calls itself
  std::string text() const;
};

// The MPI libraries that fit the launcher's environment, best first: only Open MPI under its own
// mpirun; Open MPI first if the launcher uses PMIx; MPICH first if it uses PMI.
std::vector<MpiCandidate> mpi_candidates();

// Loads the first candidate that is found; it stays loaded. Searches LD_LIBRARY_PATH, the folders
// of the launcher and of the mpiexec on PATH, the Python environment where abtrain is installed,
// and the system's own folders. Throws Error(Config), which says where it searched and how to get
// MPI.
MpiLibrary load_mpi(const std::vector<MpiCandidate>& candidates);

}  // namespace abtrain::comm
