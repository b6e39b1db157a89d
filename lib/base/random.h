// The counter-based random numbers that the host and kernels share.
#pragma once

#include "kernels/random.h"

namespace abtrain {

using kernels::Random;
using kernels::RandomPurpose;

}  // namespace abtrain
