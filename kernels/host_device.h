// ABT_HOST_DEVICE marks functions that kernels and host code share: one source,
// so that both give the same bits.
#pragma once

#ifdef __CUDACC__
#define ABT_HOST_DEVICE __host__ __device__
#else
#define ABT_HOST_DEVICE
#endif

// ABT_LAUNCHER marks the launchers of kernels. A build without CUDA has none of
// them, and ops/launch.h calls none; weak symbols need no definition.
#ifdef ABTRAIN_HAS_KERNELS
#define ABT_LAUNCHER
#else
#define ABT_LAUNCHER [[gnu::weak]]
#endif
