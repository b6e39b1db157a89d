// The all-reduce of all numbers, in fp32 or in 16 bits on the wire: what the
// compressing schemes are measured against.
#pragma once

#include "compress/reducer.h"

namespace abtrain::compress {

// dtype: auto (fp32) | fp32 | fp16 | bf16. Error(Config) for any other.
std::unique_ptr<Reducer> make_plain(const ReducerOptions& options);

}  // namespace abtrain::compress
