// How the workers of a run exchange data: as threads of one process, over MPI, or over NCCL.
#pragma once

namespace abtrain::comm {

enum class BackEnd { Local, Mpi, Nccl };

}  // namespace abtrain::comm
