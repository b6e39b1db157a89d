// The instruction sets of the CPU forms; all give the same bits.
#pragma once

namespace abtrain::ops {

enum class Simd { Plain, Avx2 };  // Avx2: with FMA and popcnt

Simd best_simd();

}  // namespace abtrain::ops
