// The part of wire_codes.h for WireCode::Sparse. The host has a form of its
// own: it finds the cut by bisection over 16-bit keys in vectors, a thread
// block by counting digits.
#pragma once

#include "kernels/codes/wire_codes.h"

namespace abtrain::kernels {

ABT_LAUNCHER int encode_sparse(const EncodeWire& job, void* stream);
ABT_LAUNCHER int decode_sparse(const DecodeWire& job, void* stream);
void encode_sparse_on_host(const EncodeWire& job);
void decode_sparse_on_host(const DecodeWire& job);

}  // namespace abtrain::kernels
