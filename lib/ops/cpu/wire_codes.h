// The forms of wire_codes.h on the CPU; arguments are checked.
#pragma once

#include "kernels/wire_codes.h"

namespace abtrain::ops {

void encode_wire_cpu(const kernels::EncodeWire& job);
void decode_wire_cpu(const kernels::DecodeWire& job);

// Their part for WireCode::Sparse.
void encode_sparse_cpu(const kernels::EncodeWire& job);
void decode_sparse_cpu(const kernels::DecodeWire& job);

}  // namespace abtrain::ops
