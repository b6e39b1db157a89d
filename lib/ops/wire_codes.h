// The codes in which workers send a flat fp32 change u over a slow link. What a
// record does not express stays in u, as the residual for the next time (error
// feedback). kernels/codes/wire_codes.h gives the layout of records.
//
//          bits per parameter  an element is sent as               residual
//   Int8                8.125  127ths of its chunk's largest          4e-5
//   Int4                4.125  7ths of its chunk's largest           0.014
//   Int2                2.125  -3, -1, 1 or 3 scales                 0.117
//   Sparse       14 d + 0.008  0, or for the largest: +-2 levels      0.88
//
// The residual is the share of the sum of squares that remains of a Gaussian u. The value for
// Sparse is at the density d = 1/64, which takes 0.227 bits per parameter.
//
// Int8 and Int4 round to the nearest multiple of the scale, 0 included, so no element's error
// exceeds its magnitude. Int2 (threshold of Max, "Quantizing for minimum distortion", 1960) and
// Sparse choose their scales by least squares. Whatever the distribution, the error of a chunk is
// then smaller than the chunk in the 2-norm. All codes are thus contractions, with which error
// feedback keeps the residual bounded (Karimireddy et al., "Error feedback fixes SignSGD and other
// gradient compression schemes", 2019).
//
// Sparse is the chunk-wise top-k with 2 bits of SparseLoCo (Sarfi et al., 2025, arXiv 2508.15706).
// It sends the largest magnitudes of each chunk (among equal magnitudes, those with lower indices),
// each as an index, a sign and one of two levels. The lower level is the mean of the sent
// magnitudes up to their mean, the upper level the mean of those above it. (Levels of 1 and 3
// scales suit a Gaussian, but not its tails: they would leave 17 % of what is sent as the residual,
// whereas these levels leave 0.4 %.)
//
// A chunk of zeros, or with a scale below 2^-126, decodes to zeros. A NaN or an infinity makes its
// whole chunk NaN (in Sparse, all elements of the chunk that are sent). CPU and GPU results are
// bit-identical for any number of threads: sums use the lanes of kernels/blocks/chunk_norm.h. On
// CUDA the kernels are queued on this thread's current stream, and nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/codes/wire_codes.h"

namespace abtrain::ops {

using kernels::kSparseChunk;  // elements chosen together
using kernels::kWireChunk;    // elements per scale of Int8, Int4 and Int2
using kernels::WireCode;

struct WireFormat {
  WireCode code = WireCode::Int8;
  // Sparse: the share of each chunk's elements that is sent, above 0 and at most 1;
  // rounded up to a multiple of 4 elements.
  double density = 1.0 / 64;
};

// Bytes of the record of `numel` elements: 0 for none, else a multiple of 4.
std::int64_t wire_bytes(const WireFormat& format, std::int64_t numel);

// Writes the record of u (flat fp32) and subtracts the decoded record from u. record: flat uint8,
// at least wire_bytes(); it must begin at a multiple of 4 bytes, as consecutive records in a buffer
// do.
void encode_wire(const at::Tensor& u, const WireFormat& format, const at::Tensor& record);

// out (flat fp32) += factor times the decoded record, rounded once; without `add` the product
// overwrites out. The mean of n records is thus their sum in rank order with the factor 1 / n.
void decode_wire(
    const at::Tensor& record, const WireFormat& format, float factor, bool add,
    const at::Tensor& out);

}  // namespace abtrain::ops
