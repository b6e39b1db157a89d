// How the workers of a run communicate.
#pragma once

#include <optional>
#include <string>

#include "comm/back_end.h"

namespace abtrain::train {

using comm::BackEnd;

// Where the workers are.
struct WorkerPlace {
  int workers = 1;            // workers of the run
  bool processes = false;     // processes, else threads of this process
  std::string launcher = {};  // what started the processes
  bool has_mpi = false;       // the processes can meet over MPI
  bool on_gpu = false;
  int gpus = 0;           // distinct GPUs of all workers, over all hosts
  bool has_nccl = false;  // this build has NCCL
  bool nccl_shares_gpus = false;  // and it accepts several workers on one GPU
};

struct BackEndChoice {
  BackEnd back_end = BackEnd::Local;
  std::string note;  // what the user should know; usually empty
};

// `wanted`: nullopt picks the best back end that works. Throws Error(Config) if `wanted` cannot
// work. NCCL refuses workers that share a GPU unless `nccl_shares_gpus`: with nullopt or Nccl, they
// get the next best back end and a note.
BackEndChoice choose_back_end(const std::optional<BackEnd>& wanted, const WorkerPlace& place);

}  // namespace abtrain::train
