// A collective as NCCL calls on one stream. Internal to the NCCL back end. NCCL's and CUDA's types
// are only declared here, so that builds without them can include this header.
#pragma once

#include "comm/call.h"

struct ncclComm;
struct CUstream_st;

namespace abtrain::comm {

// Starts the transfer on member `rank` of `size`, in place if the buffers allow it. Takes CUDA
// tensors on the communicator's device. Returns an ncclResult_t: ncclSuccess or ncclInProgress if
// all is well.
int enqueue(const Call& call, int rank, int size, ncclComm* communicator, CUstream_st* stream);

}  // namespace abtrain::comm
