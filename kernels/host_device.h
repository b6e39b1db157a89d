// Markers of functions that kernels and host code share: one source, so that both give the same
// bits.
#pragma once

// ABT_HOST_DEVICE marks plain functions. ABT_INLINE marks functions that are inlined into every
// version of their caller, each compiled for another processor; ABT_INLINED marks such lambdas.
// ABT_UNROLL unrolls a loop on a GPU; on a host the compiler vectorizes it.
#ifdef __CUDACC__
#define ABT_HOST_DEVICE __host__ __device__
#define ABT_INLINE __device__ __forceinline__
#define ABT_INLINED
#define ABT_UNROLL _Pragma("unroll")
#else
#define ABT_HOST_DEVICE
#define ABT_INLINE [[gnu::always_inline]] inline
#define ABT_INLINED __attribute__((always_inline))
#define ABT_UNROLL
#endif

// ABT_LAUNCHER marks the launchers of kernels. A build without CUDA has none of
// them, and ops/launch.h calls none; weak symbols need no definition.
#ifdef ABTRAIN_HAS_KERNELS
#define ABT_LAUNCHER
#else
#define ABT_LAUNCHER [[gnu::weak]]
#endif
