// The instruction sets of the CPU forms; all give the same bits.
#pragma once

#include "kernels/exponential.h"
#include "kernels/host_device.h"

namespace abtrain::ops {

using kernels::exponential;  // without a call, so that loops with it are vectorized

enum class Simd { Plain, Avx2 };  // Avx2: with FMA and popcnt

Simd best_simd();

// Calls work() compiled for that instruction set. `work` must be a lambda
// marked ABT_INLINED, and what it calls marked ABT_INLINE:
//
//   compiled_for(best_simd(), [&]() ABT_INLINED { add(a, b, count); });
template <class Work>
#if defined(__x86_64__)
__attribute__((target("avx2,fma")))
#endif
void with_avx2(const Work& work) {
  work();
}
template <class Work>
void compiled_for(Simd simd, const Work& work) {
  if (simd == Simd::Avx2) {
    with_avx2(work);
  } else {
    work();
  }
}

}  // namespace abtrain::ops
