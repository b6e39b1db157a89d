// How the workers of a run talk to each other.
#pragma once

#include <string>

namespace abtrain::train {

enum class BackEnd { Local, Mpi, Nccl };

// Where they are.
struct WorkerPlace {
  int workers = 1;            // of the run
  bool processes = false;     // else threads of this one
  std::string launcher = {};  // that started the processes
  bool has_mpi = false;       // and they can meet by MPI
  bool on_gpu = false;
  int gpus = 0;           // that they have between them, of all hosts
  bool has_nccl = false;  // in this build
};

struct BackEndChoice {
  BackEnd back_end = BackEnd::Local;
  std::string note;  // what a user should know of it; mostly empty
};

// comm: auto | local | mpi | nccl. Throws Error(Config) where that cannot work;
// workers that share a GPU, which NCCL refuses, get the next best way and a
// note.
BackEndChoice choose_back_end(
    const std::string& comm,
    const WorkerPlace& place);

}  // namespace abtrain::train
