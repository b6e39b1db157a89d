#include "ops/sign_codes.h"

#include "base/error.h"
#include "ops/sign_codes_backends.h"

namespace abtrain::ops {

namespace {

void check(
    const at::Tensor& tensor,
    at::ScalarType type,
    std::int64_t numel,
    c10::Device device,
    const char* what) {
  ABT_ASSERT(
      tensor.dim() == 1 && tensor.is_contiguous() &&
          tensor.scalar_type() == type && tensor.numel() >= numel &&
          tensor.device() == device,
      "sign codes: expected ",
      numel,
      " ",
      type,
      " of ",
      what,
      " on ",
      device,
      ", got ",
      tensor.scalar_type(),
      tensor.sizes(),
      " on ",
      tensor.device());
}

std::uint32_t* words(const at::Tensor& tensor, std::int64_t from = 0) {
  return reinterpret_cast<std::uint32_t*>(
             tensor.mutable_data_ptr<std::int32_t>()) +
      from;
}

}  // namespace

std::int64_t sign_words(
    const CodeBlocks& blocks, CodeBlocks::Part part, bool fresh) {
  return part.end - part.begin + (fresh ? 2 : 1) * blocks.groups(part);
}

void encode_signs(
    const at::Tensor& u,
    CodeBlocks& blocks,
    const at::Tensor& alive,
    const at::Tensor& wire,
    bool fresh) {
  const c10::Device device = u.device();
  check(u, at::kFloat, blocks.end(), device, "numbers");
  check(alive, at::kInt, blocks.groups(), device, "alive");
  check(
      wire, at::kInt, sign_words(blocks, blocks.all(), fresh), device, "wire");
  const kernels::EncodeSigns job{
      blocks.on(device),
      blocks.size(),
      u.mutable_data_ptr<float>(),
      words(alive),
      words(wire),
      fresh};
  device.is_cuda() ? encode_signs_cuda(job, device) : encode_signs_cpu(job);
}

void serve_signs(
    const at::Tensor& in,
    int workers,
    CodeBlocks& blocks,
    CodeBlocks::Part part,
    const at::Tensor& alive,
    const at::Tensor& residual,
    const at::Tensor& wire,
    bool fresh) {
  const c10::Device device = in.device();
  const std::int64_t stride = sign_words(blocks, part, fresh);
  check(in, at::kInt, workers * stride, device, "workers' records");
  check(alive, at::kInt, blocks.groups(), device, "alive");
  check(residual, at::kFloat, blocks.span(part), device, "residual");
  check(wire, at::kInt, stride, device, "wire");
  const kernels::ServeSigns job{
      blocks.on(device) + part.begin,
      part.end - part.begin,
      words(in),
      stride,
      workers,
      words(alive, blocks.groups_before(part.begin)),
      residual.mutable_data_ptr<float>(),
      words(wire),
      fresh};
  device.is_cuda() ? serve_signs_cuda(job, device) : serve_signs_cpu(job);
}

void decode_signs(
    const at::Tensor& wire,
    CodeBlocks& blocks,
    const at::Tensor& alive,
    const at::Tensor& estimate,
    bool fresh) {
  const c10::Device device = wire.device();
  check(
      wire, at::kInt, sign_words(blocks, blocks.all(), fresh), device, "wire");
  check(alive, at::kInt, blocks.groups(), device, "alive");
  check(estimate, at::kFloat, blocks.end(), device, "estimate");
  const kernels::DecodeSigns job{
      blocks.on(device),
      blocks.size(),
      words(wire),
      words(alive),
      estimate.mutable_data_ptr<float>(),
      fresh};
  device.is_cuda() ? decode_signs_cuda(job, device) : decode_signs_cpu(job);
}

}  // namespace abtrain::ops
