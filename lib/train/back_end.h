// Chooses how the workers of a run communicate: over NCCL, MPI or the memory of one process.
#pragma once

#include <optional>
#include <string>

#include "comm/back_end.h"

namespace abtrain::train {

using comm::BackEnd;

// Where the workers run, and what they could communicate over.
struct WorkerPlace {
  int workers = 1;            // workers of the run
  bool processes = false;     // the workers are processes, else threads of this one
  std::string launcher = {};  // what started the processes
  bool has_mpi = false;       // the processes can meet over MPI
  bool on_gpu = false;
  int gpus = 0;           // distinct GPUs of all workers, over all hosts
  bool has_nccl = false;  // this build has NCCL
  bool nccl_shares_gpus = false;  // NCCL accepts several workers on one GPU
};

struct BackEndChoice {
  BackEnd back_end = BackEnd::Local;
  std::string note;  // a warning for the user; usually empty
};

// `wanted`: nullopt picks the best back end that works. Throws Error(Config) if `wanted` cannot
// work. NCCL refuses workers that share a GPU unless `nccl_shares_gpus`: with nullopt or Nccl, they
// get the next best back end and a note.
BackEndChoice choose_back_end(const std::optional<BackEnd>& wanted, const WorkerPlace& place);

}  // namespace abtrain::train
