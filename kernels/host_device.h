// Markers for functions that kernels and host code share. GPU and CPU compile the same source, so
// that their results are bit-identical.
#pragma once

// ABT_HOST_DEVICE marks plain functions. ABT_INLINE marks functions that must be inlined, because
// their callers are compiled once per instruction set (ops/cpu/simd.h); ABT_INLINED marks lambdas
// for the same reason. ABT_UNROLL unrolls the loop after it on a GPU; on the host it is empty, and
// the compiler vectorizes the loop.
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

// ABT_LAUNCHER marks the launchers of kernels, which are asynchronous. A build without CUDA defines
// none of them, and ops/launch.h throws instead of calling one. They are weak symbols there, which
// may stay undefined.
#ifdef ABTRAIN_HAS_KERNELS
#define ABT_LAUNCHER
#else
#define ABT_LAUNCHER [[gnu::weak]]
#endif
