#include "ops/difference_codes.h"

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

void encode_difference(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& records) {
  const c10::Device device = first.device();
  const std::int64_t numel = first.numel();
  check_flat(first, at::kFloat, numel, device, "encode_difference: first");
  if (second.defined()) {
    check_flat(second, at::kFloat, numel, device, "encode_difference: second");
  }
  check_flat(
      records, at::kByte, records_of(numel) * kRecordBytes, device, "encode_difference: records");
  const kernels::EncodeDifference job{
      first.const_data_ptr<float>(), nullptr,
      second.defined() ? second.const_data_ptr<float>() : nullptr, numel,
      records.mutable_data_ptr<std::uint8_t>()};
  dispatch("encode_difference", job, device, kernels::encode_difference);
}

void encode_difference_of_kept(
    const at::Tensor& kept, const at::Tensor& second, const at::Tensor& records) {
  const c10::Device device = second.device();
  const std::int64_t numel = second.numel();
  const std::int64_t bytes = records_of(numel) * kRecordBytes;
  check_flat(second, at::kFloat, numel, device, "encode_difference: second");
  check_flat(kept, at::kByte, bytes, device, "encode_difference: kept");
  check_flat(records, at::kByte, bytes, device, "encode_difference: records");
  const kernels::EncodeDifference job{
      nullptr, kept.const_data_ptr<std::uint8_t>(), second.const_data_ptr<float>(), numel,
      records.mutable_data_ptr<std::uint8_t>()};
  dispatch("encode_difference", job, device, kernels::encode_difference);
}

void decode_differences(const at::Tensor& records, const at::Tensor& out) {
  const c10::Device device = records.device();
  const std::int64_t count = records.numel() / kRecordBytes;
  check_flat(records, at::kByte, count * kRecordBytes, device, "decode_differences: records");
  check_flat(out, at::kFloat, count * kRecordNumbers, device, "decode_differences: out");
  const kernels::DecodeDifferences job{
      records.const_data_ptr<std::uint8_t>(), count, out.mutable_data_ptr<float>()};
  dispatch("decode_differences", job, device, kernels::decode_differences);
}

}  // namespace abtrain::ops
