// Functions that a kernel and the host's code share: one source, so that both
// have the same bits.
#pragma once

#ifdef __CUDACC__
#define ABT_HOST_DEVICE __host__ __device__
#else
#define ABT_HOST_DEVICE
#endif
