// The all-reduce of all elements, in fp32 or in 16 bits on the wire. The
// compressing schemes are measured against it.
#pragma once

#include "compress/reducer.h"

namespace abtrain::compress {

// dtype: auto (fp32) | fp32 | fp16 | bf16. Throws Error(Config) for any other.
std::unique_ptr<Reducer> make_plain(const ReducerOptions& options);

}  // namespace abtrain::compress
