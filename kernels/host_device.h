// ABT_HOST_DEVICE marks functions that kernels and host code share: one source,
// so that both give the same bits.
#pragma once

#ifdef __CUDACC__
#define ABT_HOST_DEVICE __host__ __device__
#else
#define ABT_HOST_DEVICE
#endif
