// The types of the elements that kernels read and write.
#pragma once

namespace abtrain::kernels {

enum class Element { F32, F16, BF16, U8, I32 };

}  // namespace abtrain::kernels
