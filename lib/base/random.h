// The counter-based random number generator that host code and GPU kernels share.
#pragma once

#include "kernels/random.h"

namespace abtrain {

using kernels::Random;
using kernels::RandomPurpose;

}  // namespace abtrain
