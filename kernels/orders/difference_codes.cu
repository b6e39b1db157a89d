#include "kernels/orders/difference_codes.h"

#include <cuda_runtime.h>

#include "kernels/elements.cuh"

namespace abtrain::kernels {

namespace {

// A thread block processes a record, and each thread one element.
__global__ void __launch_bounds__(kRecordNumbers) encode(const EncodeDifference job) {
  auto* const sizes = reinterpret_cast<float*>(shared_memory());
  const auto t = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * kRecordNumbers + t;
  float x = 0;
  if (i < job.numel) {
    const std::uint8_t* const kept = job.kept + std::int64_t{blockIdx.x} * kRecordBytes;
    const float first =
        job.first != nullptr
            ? job.first[i]
            : from_code(kept[t], *reinterpret_cast<const float*>(kept + kRecordNumbers));
    x = first - (job.second != nullptr ? job.second[i] : 0.0f);
  }
  sizes[t] = ::fabsf(x);
  combine_by_halves(
      kRecordNumbers, [=](int to, int from) { sizes[to] = ::fmaxf(sizes[to], sizes[from]); });
  const float scale = divide(sizes[0], 127.0f);
  std::uint8_t* const record = job.records + std::int64_t{blockIdx.x} * kRecordBytes;
  record[t] = to_code(x, codes_per_unit(scale));
  if (t == 0) {
    *reinterpret_cast<float*>(record + kRecordNumbers) = scale;
  }
}

__global__ void __launch_bounds__(kRecordNumbers) decode(const DecodeDifferences job) {
  const auto t = static_cast<int>(threadIdx.x);
  const std::uint8_t* const record = job.records + std::int64_t{blockIdx.x} * kRecordBytes;
  const float scale = *reinterpret_cast<const float*>(record + kRecordNumbers);
  job.out[std::int64_t{blockIdx.x} * kRecordNumbers + t] = from_code(record[t], scale);
}

}  // namespace

int encode_difference(const EncodeDifference& job, void* stream) {
  return launch(
      encode, (job.numel + kRecordNumbers - 1) / kRecordNumbers, kRecordNumbers,
      kRecordNumbers * sizeof(float), stream, job);
}

int decode_differences(const DecodeDifferences& job, void* stream) {
  return launch(decode, job.count, kRecordNumbers, 0, stream, job);
}

}  // namespace abtrain::kernels
