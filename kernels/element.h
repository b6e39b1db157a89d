// Types of the elements that kernels read and write.
#pragma once

namespace abtrain::kernels {

enum class Element { F32, F16, BF16 };

}  // namespace abtrain::kernels
