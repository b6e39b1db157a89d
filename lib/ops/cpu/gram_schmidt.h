// The forms of gram_schmidt.h on the CPU; arguments are checked.
#pragma once

#include "ops/gram_schmidt.h"

namespace abtrain::ops {

void gram_schmidt_cpu(const at::Tensor& flat, const std::vector<RowSet>& sets);

}  // namespace abtrain::ops
