// Differences of gradients as 8-bit codes, for decisions that need only the
// signs of scalar products: 256 numbers and their scale, a 127th of the largest
// one, are a record of 260 bytes; a number is rounded to the nearest code. The
// same bits on CPU and GPU; on CUDA queued on this thread's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/difference_codes.h"

namespace abtrain::ops {

using kernels::kRecordBytes;
using kernels::kRecordNumbers;

inline std::int64_t records_of(std::int64_t numel) {
  return (numel + kRecordNumbers - 1) / kRecordNumbers;
}

// records (uint8, kRecordBytes each, records_of(numel) of them) of first -
// second, flat fp32; second undefined: of first.
void encode_difference(
    const at::Tensor& first,
    const at::Tensor& second,
    const at::Tensor& records);

// The same where the first numbers are known as records, `kept`.
void encode_difference_of_kept(
    const at::Tensor& kept,
    const at::Tensor& second,
    const at::Tensor& records);

// out: flat fp32, kRecordNumbers a record.
void decode_differences(const at::Tensor& records, const at::Tensor& out);

// The rest is of the CPU: products without decoding, from whole numbers. Rows
// of records are rows `places` of `records` (uint8, rows x bytes); `sum`: flat
// fp32, kRecordNumbers for each record of a row.
//
// triangle (fp32, n (n + 1) / 2): <D_j, D_i> at place j (j + 1) / 2 + i for
// i < j, <sum, D_j> for i = j. The same bits on any number of threads.
void record_products(
    const at::Tensor& records,
    const std::vector<std::int64_t>& places,
    const at::Tensor& sum,
    const at::Tensor& triangle);
// sum += signs_j D_j, in the order of j; signs: int8.
void add_records(
    const at::Tensor& records,
    const std::vector<std::int64_t>& places,
    const at::Tensor& signs,
    const at::Tensor& sum);

}  // namespace abtrain::ops
