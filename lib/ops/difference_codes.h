// Differences of gradients as 8-bit codes, for decisions that need only the
// signs of inner products. A record of 260 bytes holds 256 codes and their
// scale, 1/127 of the largest magnitude; each element is rounded to the nearest
// code. CPU and GPU give the same bits. On CUDA the kernels are queued on this
// thread's current stream.
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

// Encodes first - second, flat fp32 tensors; if `second` is undefined, `first`.
// records: uint8, records_of(numel) records of kRecordBytes each.
void encode_difference(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& records);

// The same, but the first operand is given as records, `kept`.
void encode_difference_of_kept(
    const at::Tensor& kept, const at::Tensor& second, const at::Tensor& records);

// out: flat fp32, kRecordNumbers per record.
void decode_differences(const at::Tensor& records, const at::Tensor& out);

// The functions below are CPU only. They multiply records as integers, without
// decoding them. D_j is row places[j] of `records` (uint8, rows x bytes), a row
// of records; `sum` is flat fp32, kRecordNumbers for each record of a row.
//
// triangle (fp32, n (n + 1) / 2): <D_j, D_i> at index j (j + 1) / 2 + i for
// i < j, <sum, D_j> for i = j. Any number of threads gives the same bits.
void difference_products(
    const at::Tensor& records, const std::vector<std::int64_t>& places, const at::Tensor& sum,
    const at::Tensor& triangle);
// sum += signs_j D_j, in the order of j. signs: int8.
void add_differences(
    const at::Tensor& records, const std::vector<std::int64_t>& places, const at::Tensor& signs,
    const at::Tensor& sum);

}  // namespace abtrain::ops
