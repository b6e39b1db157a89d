#include "ops/cpu/simd.h"

namespace abtrain::ops {

Simd best_simd() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("popcnt")) {
    return Simd::Avx2;
  }
#endif
  return Simd::Plain;
}

}  // namespace abtrain::ops
