// How workers communicate: within the memory of one process, over MPI, or from GPU to GPU.
#pragma once

namespace abtrain::comm {

enum class BackEnd { Local, Mpi, Nccl };

}  // namespace abtrain::comm
