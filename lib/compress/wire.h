// The schemes int8, int4, int2 and sparseloco, whose record of a flat tensor
// does not depend on the other members (ops/wire_codes.h).
#pragma once

#include <optional>

#include "compress/reducer_options.h"
#include "ops/wire_codes.h"

namespace abtrain::compress {

// The form of such a scheme's records; empty for all other schemes.
std::optional<ops::WireFormat> wire_format(const ReducerOptions& options);

}  // namespace abtrain::compress
