#include <algorithm>

#include "kernels/orders/difference_codes.h"
#include "ops/cpu/code_blocks.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

ABT_INLINE void decode(const std::uint8_t* record, std::int64_t count, float* out) {
  const float scale = scale_of(record);
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = from_code(record[i], scale);
  }
}

// difference = first - second, padded with zeros. A null job.first stands for the decoded job.kept,
// a null job.second for 0.
ABT_INLINE void subtract(
    const EncodeDifference& job, std::int64_t begin, std::int64_t count, float* difference) {
  float scratch[kRecordNumbers];
  const float* first = scratch;
  if (job.first != nullptr) {
    first = job.first + begin;
  } else {
    decode(job.kept + begin / kRecordNumbers * kRecordBytes, count, scratch);
  }
  if (job.second == nullptr) {
    std::copy(first, first + count, difference);
  } else {
    const float* const second = job.second + begin;
    for (std::int64_t i = 0; i < count; ++i) {
      difference[i] = first[i] - second[i];
    }
  }
  std::fill(difference + count, difference + kRecordNumbers, 0.0f);
}

ABT_INLINE float largest_size(const float* x) {
  constexpr int kWidth = 32;
  float lanes[kWidth] = {};
  for (int i = 0; i < kRecordNumbers; i += kWidth) {
    for (int k = 0; k < kWidth; ++k) {
      const float size = std::fabs(x[i + k]);
      lanes[k] = lanes[k] < size ? size : lanes[k];
    }
  }
  return *std::max_element(lanes, lanes + kWidth);
}

}  // namespace

void work_on_host(const EncodeDifference& job) {
  const std::int64_t count = (job.numel + kRecordNumbers - 1) / kRecordNumbers;
  for_blocks(count, [&](std::int64_t b) ABT_INLINED {
    const std::int64_t begin = b * kRecordNumbers;
    float x[kRecordNumbers];
    subtract(job, begin, std::min<std::int64_t>(kRecordNumbers, job.numel - begin), x);
    const float scale = largest_size(x) / 127.0f;
    const float factor = codes_per_unit(scale);
    std::uint8_t* const record = job.records + b * kRecordBytes;
    for (int i = 0; i < kRecordNumbers; ++i) {
      record[i] = to_code(x[i], factor);
    }
    std::memcpy(record + kRecordNumbers, &scale, sizeof(scale));
  });
}

void work_on_host(const DecodeDifferences& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED {
    decode(job.records + b * kRecordBytes, kRecordNumbers, job.out + b * kRecordNumbers);
  });
}

}  // namespace abtrain::kernels
