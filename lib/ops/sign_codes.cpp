#include "ops/sign_codes.h"

#include "kernels/codes/sign_codes.h"
#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

std::uint32_t* words(const at::Tensor& tensor, std::int64_t from = 0) {
  return reinterpret_cast<std::uint32_t*>(tensor.mutable_data_ptr<std::int32_t>()) + from;
}

}  // namespace

std::int64_t sign_words(const CodeBlocks& blocks, CodeBlocks::Range part, bool fresh) {
  return part.end - part.begin + (fresh ? 2 : 1) * blocks.groups(part);
}

void encode_signs(
    const at::Tensor& u, CodeBlocks& blocks, const at::Tensor& alive, const at::Tensor& wire,
    bool fresh) {
  const c10::Device device = u.device();
  check_flat(u, at::kFloat, blocks.end(), device, "sign codes: numbers");
  check_flat(alive, at::kInt, blocks.groups(), device, "sign codes: alive");
  check_flat(wire, at::kInt, sign_words(blocks, blocks.all(), fresh), device, "sign codes: wire");
  const kernels::EncodeSigns job{blocks.on(device), blocks.size(), u.mutable_data_ptr<float>(),
                                 words(alive),      words(wire),   fresh};
  dispatch("encode_signs", job, device, kernels::encode_signs);
}

void serve_signs(
    const at::Tensor& in, int workers, CodeBlocks& blocks, CodeBlocks::Range part,
    const at::Tensor& alive, const at::Tensor& residual, const at::Tensor& wire, bool fresh) {
  const c10::Device device = in.device();
  const std::int64_t stride = sign_words(blocks, part, fresh);
  check_flat(in, at::kInt, workers * stride, device, "sign codes: workers' records");
  check_flat(alive, at::kInt, blocks.groups(), device, "sign codes: alive");
  check_flat(residual, at::kFloat, blocks.span(part), device, "sign codes: residual");
  check_flat(wire, at::kInt, stride, device, "sign codes: wire");
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
  dispatch("serve_signs", job, device, kernels::serve_signs);
}

void decode_signs(
    const at::Tensor& wire, CodeBlocks& blocks, const at::Tensor& alive, const at::Tensor& estimate,
    bool fresh) {
  const c10::Device device = wire.device();
  check_flat(wire, at::kInt, sign_words(blocks, blocks.all(), fresh), device, "sign codes: wire");
  check_flat(alive, at::kInt, blocks.groups(), device, "sign codes: alive");
  check_flat(estimate, at::kFloat, blocks.end(), device, "sign codes: estimate");
  const kernels::DecodeSigns job{
      blocks.on(device),
      blocks.size(),
      words(wire),
      words(alive),
      estimate.mutable_data_ptr<float>(),
      fresh};
  dispatch("decode_signs", job, device, kernels::decode_signs);
}

}  // namespace abtrain::ops
