// The instruction sets for which code for the CPU is compiled. Results are bit-identical with each
// of them.
#pragma once

#include "kernels/exponential.h"
#include "kernels/host_device.h"

namespace abtrain::ops {

using kernels::exponential;  // inlined, so that loops that use it are vectorized

enum class Simd { Plain, Avx2 };  // Avx2: with FMA and popcnt

// Returns the best instruction set that this processor has.
Simd best_simd();
// The instruction set in use: the best, unless a test compares the instruction sets.
inline Simd simd_in_use = best_simd();

template <class Work>
#if defined(__x86_64__)
__attribute__((target("avx2,fma")))
#endif
void with_avx2(const Work& work) {
  work();
}
// Calls work() compiled for the instruction set in use. `work` must be a lambda marked ABT_INLINED,
// and the functions that it calls must be marked ABT_INLINE:
//
//   vectorized([&]() ABT_INLINED { add(a, b, count); });
template <class Work>
void vectorized(const Work& work) {
  if (simd_in_use == Simd::Avx2) {
    with_avx2(work);
  } else {
    work();
  }
}

}  // namespace abtrain::ops
