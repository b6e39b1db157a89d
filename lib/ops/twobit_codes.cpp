#include "ops/twobit_codes.h"

#include "kernels/codes/twobit_codes.h"
#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

void check_workers(int workers) {
  ABT_ASSERT(
      workers > 0 && workers <= kMaxCodeWorkers, "twobit codes: expected 1 to {} workers, got {}",
      kMaxCodeWorkers, workers);
}

}  // namespace

void encode_threshold(
    const at::Tensor& u, CodeBlocks& blocks, const at::Tensor& thresholds, const at::Tensor& wire,
    CodeForm form) {
  const c10::Device device = u.device();
  const kernels::EncodeThreshold job{
      blocks.on(device),
      blocks.size(),
      flat<float>(u, blocks.end(), device, "encode_threshold: u"),
      flat<const float>(thresholds, blocks.tensors(), device, "encode_threshold: t"),
      flat<std::uint8_t>(
          wire, code_bytes(blocks, blocks.all(), form), device, "encode_threshold: wire"),
      form};
  dispatch("encode_threshold", job, device, kernels::encode_threshold);
}

void pack_sums(
    const at::Tensor& in, int workers, CodeBlocks& blocks, CodeBlocks::Range part,
    const at::Tensor& wire) {
  const c10::Device device = in.device();
  const std::int64_t stride = code_bytes(blocks, part, CodeForm::TwoBits);
  check_workers(workers);
  const kernels::PackSums job{
      blocks.on(device) + part.begin,
      part.end - part.begin,
      flat<const std::uint8_t>(in, workers * stride, device, "pack_sums: codes"),
      stride,
      workers,
      reinterpret_cast<std::uint32_t*>(
          flat<std::int32_t>(wire, sum_words(blocks, part, workers), device, "pack_sums: wire")),
      sum_bits(workers)};
  dispatch("pack_sums", job, device, kernels::pack_sums);
}

void average_codes(
    const at::Tensor& in, CodeWire wire, int workers, CodeBlocks& blocks,
    const at::Tensor& thresholds, const at::Tensor& estimate) {
  const c10::Device device = in.device();
  check_workers(workers);
  const CodeBlocks::Range all = blocks.all();
  const std::int64_t stride = code_bytes(blocks, all, CodeForm::TwoBits);
  switch (wire) {
    case CodeWire::Codes:
      check_flat(in, at::kByte, workers * stride, device, "average_codes: codes");
      break;
    case CodeWire::Planes:
      check_flat(in, at::kInt, sum_words(blocks, all, workers), device, "average_codes: sums");
      break;
    case CodeWire::Bytes:
      ABT_ASSERT(
          workers <= kernels::kMaxByteWorkers,
          "average_codes: a byte holds the sum of at most {} workers, got {}",
          kernels::kMaxByteWorkers, workers);
      check_flat(
          in, at::kByte, code_bytes(blocks, all, CodeForm::Bytes), device, "average_codes: bytes");
      break;
  }
  const kernels::AverageCodes job{
      blocks.on(device),
      blocks.size(),
      in.const_data_ptr(),
      wire,
      stride,
      sum_bits(workers),
      workers,
      flat<const float>(thresholds, blocks.tensors(), device, "average_codes: t"),
      flat<float>(estimate, blocks.end(), device, "average_codes: estimate")};
  dispatch("average_codes", job, device, kernels::average_codes);
}

}  // namespace abtrain::ops
