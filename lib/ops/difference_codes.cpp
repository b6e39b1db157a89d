#include "ops/difference_codes.h"

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

// The first operand is `first` or, if that is undefined, the vector that the records `kept` encode.
void encode(
    const at::Tensor& first, const at::Tensor& kept, const at::Tensor& second, std::int64_t numel,
    const at::Tensor& records) {
  const c10::Device device = records.device();
  const std::int64_t bytes = records_of(numel) * kRecordBytes;
  const kernels::EncodeDifference job{
      flat_or_null<const float>(first, numel, device, "encode_difference: first"),
      flat_or_null<const std::uint8_t>(kept, bytes, device, "encode_difference: kept"),
      flat_or_null<const float>(second, numel, device, "encode_difference: second"), numel,
      flat<std::uint8_t>(records, bytes, device, "encode_difference: records")};
  dispatch("encode_difference", job, device, kernels::encode_difference);
}

}  // namespace

void encode_difference(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& records) {
  encode(first, {}, second, first.numel(), records);
}

void encode_difference_of_kept(
    const at::Tensor& kept, const at::Tensor& second, const at::Tensor& records) {
  encode({}, kept, second, second.numel(), records);
}

void decode_differences(const at::Tensor& records, const at::Tensor& out) {
  const c10::Device device = records.device();
  const std::int64_t count = records.numel() / kRecordBytes;
  const kernels::DecodeDifferences job{
      flat<const std::uint8_t>(
          records, count * kRecordBytes, device, "decode_differences: records"),
      count, flat<float>(out, count * kRecordNumbers, device, "decode_differences: out")};
  dispatch("decode_differences", job, device, kernels::decode_differences);
}

}  // namespace abtrain::ops
