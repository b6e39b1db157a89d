// Differences of gradients as 8-bit codes, for decisions that need only the signs of inner
// products. A record of 260 bytes holds 256 codes and their scale, 1/127 of the largest magnitude;
// each element is rounded to the nearest code. CPU and GPU results are bit-identical. On CUDA the
// kernels are queued on this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/orders/difference_codes.h"

namespace abtrain::ops {

using kernels::kRecordBytes;
using kernels::kRecordNumbers;

inline std::int64_t records_of(std::int64_t numel) {
  return (numel + kRecordNumbers - 1) / kRecordNumbers;
}

// Encodes first - second (flat fp32 tensors), or `first` if `second` is undefined. records: uint8,
// records_of(numel) records of kRecordBytes each.
void encode_difference(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& records);

// Like encode_difference(), but with the vector that the records `kept` encode as first operand.
void encode_difference_of_kept(
    const at::Tensor& kept, const at::Tensor& second, const at::Tensor& records);

// out: flat fp32, kRecordNumbers per record.
void decode_differences(const at::Tensor& records, const at::Tensor& out);

// The functions below run on the CPU only and use the codes without decoding them first. Row
// places[j] of `records` (uint8, rows x bytes) holds the encoded form of a vector D_j. `sum` is a
// flat fp32 tensor with kRecordNumbers elements per record of a row.
//
// triangle (fp32, n (n + 1) / 2): <D_j, D_i> at index j (j + 1) / 2 + i for i < j, <sum, D_j> for i
// = j. Results are bit-identical for any number of threads.
void difference_products(
    const at::Tensor& records, const std::vector<std::int64_t>& places, const at::Tensor& sum,
    const at::Tensor& triangle);
// sum += signs_j D_j, in the order of j. signs: int8.
void add_differences(
    const at::Tensor& records, const std::vector<std::int64_t>& places, const at::Tensor& signs,
    const at::Tensor& sum);

}  // namespace abtrain::ops
