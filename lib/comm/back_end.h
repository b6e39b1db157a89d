// The ways in which workers communicate: in the memory of one process, over
// MPI, or from GPU to GPU.
#pragma once

namespace abtrain::comm {

enum class BackEnd { Local, Mpi, Nccl };

}  // namespace abtrain::comm
