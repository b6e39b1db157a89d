#include "ops/sign_codes.h"

#include "kernels/codes/sign_codes.h"
#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

std::uint32_t* words(
    const at::Tensor& tensor, std::int64_t count, c10::Device device, const char* what) {
  return reinterpret_cast<std::uint32_t*>(flat<std::int32_t>(tensor, count, device, what));
}

}  // namespace

std::int64_t sign_words(const CodeBlocks& blocks, CodeBlocks::Range part, bool fresh) {
  return part.end - part.begin + (fresh ? 2 : 1) * blocks.groups(part);
}

void encode_signs(
    const at::Tensor& u, CodeBlocks& blocks, const at::Tensor& alive, const at::Tensor& wire,
    bool fresh) {
  const c10::Device device = u.device();
  const kernels::EncodeSigns job{
      blocks.on(device),
      blocks.size(),
      flat<float>(u, blocks.end(), device, "sign codes: numbers"),
      words(alive, blocks.groups(), device, "sign codes: alive"),
      words(wire, sign_words(blocks, blocks.all(), fresh), device, "sign codes: wire"),
      fresh};
  dispatch("encode_signs", job, device, kernels::encode_signs);
}

void serve_signs(
    const at::Tensor& in, int workers, CodeBlocks& blocks, CodeBlocks::Range part,
    const at::Tensor& alive, const at::Tensor& residual, const at::Tensor& wire, bool fresh) {
  const c10::Device device = in.device();
  const std::int64_t stride = sign_words(blocks, part, fresh);
  const kernels::ServeSigns job{
      blocks.on(device) + part.begin,
      part.end - part.begin,
      words(in, workers * stride, device, "sign codes: workers' records"),
      stride,
      workers,
      words(alive, blocks.groups(), device, "sign codes: alive") + blocks.groups_before(part.begin),
      flat<float>(residual, blocks.span(part), device, "sign codes: residual"),
      words(wire, stride, device, "sign codes: wire"),
      fresh};
  dispatch("serve_signs", job, device, kernels::serve_signs);
}

void decode_signs(
    const at::Tensor& wire, CodeBlocks& blocks, const at::Tensor& alive, const at::Tensor& estimate,
    bool fresh) {
  const c10::Device device = wire.device();
  const kernels::DecodeSigns job{
      blocks.on(device),
      blocks.size(),
      words(wire, sign_words(blocks, blocks.all(), fresh), device, "sign codes: wire"),
      words(alive, blocks.groups(), device, "sign codes: alive"),
      flat<float>(estimate, blocks.end(), device, "sign codes: estimate"),
      fresh};
  dispatch("decode_signs", job, device, kernels::decode_signs);
}

}  // namespace abtrain::ops
