// Finds and loads an MPI library when one is first needed, so that the same
// program runs with any Open MPI or MPICH, of which Intel MPI is one, and
// without any. A plug-in for each of the two (plugin.c) lies in lib/abtrain
// beside the program's folder.
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
  std::string path;  // "libmpi.so.40", or with its folder
  // "Open MPI v4.1.4 (libmpi.so.40)", as the library says itself
  std::string text() const;
};

// The MPIs that the environment of the launcher allows, best first: only Open
// MPI under its own mpirun; Open MPI first where the launcher speaks PMIx;
// MPICH first where it speaks PMI.
std::vector<MpiCandidate> mpi_candidates();

// Loads the first candidate that is there. Libraries are looked for in
// LD_LIBRARY_PATH, beside the launcher, beside the mpiexec that is on PATH, in
// the Python environment where abtrain is installed, and where the system
// looks. They stay loaded. Throws Error(Config), which says what was looked for
// and how to get one.
MpiLibrary load_mpi(const std::vector<MpiCandidate>& candidates);

}  // namespace abtrain::comm
