// The part of wire_codes.h for WireCode::Sparse.
#pragma once

#include "kernels/wire_codes.h"

namespace abtrain::kernels {

ABT_LAUNCHER int encode_sparse(const EncodeWire& job, void* stream);
ABT_LAUNCHER int decode_sparse(const DecodeWire& job, void* stream);
void encode_sparse_on_host(const EncodeWire& job);
void decode_sparse_on_host(const DecodeWire& job);

}  // namespace abtrain::kernels
