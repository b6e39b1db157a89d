#include "compress/average.h"

#include <ATen/ops/empty.h>

#include "base/error.h"
#include "ops/scale_cast.h"

namespace abtrain::compress {

at::ScalarType wire_dtype(std::string_view name, std::string_view key) {
  if (name == "fp16") {
    return at::kHalf;
  }
  if (name == "bf16") {
    return at::kBFloat16;
  }
  ABT_CHECK(
      name == "fp32",
      Config,
      key,
      ": expected fp32, fp16 or bf16, got '",
      name,
      "'");
  return at::kFloat;
}

at::ScalarType plain_dtype(const ReducerOptions& options) {
  if (options.dtype != "auto") {
    return wire_dtype(options.dtype, "reducer.dtype");
  }
  return options.name == "plain" || options.name == "powersgd" ? at::kFloat
                                                               : at::kHalf;
}

void Average::operator()(
    const at::Tensor& flat,
    comm::Communicator& communicator,
    comm::Purpose purpose) {
  ABT_ASSERT(
      flat.dim() == 1 && flat.is_contiguous() &&
          flat.scalar_type() == at::kFloat,
      "average: expected a flat fp32 tensor, got ",
      c10::toString(flat.scalar_type()),
      flat.sizes());
  if (communicator.size() == 1) {
    return;
  }
  if (wire_ == at::kFloat) {
    communicator.all_reduce(flat, comm::ReduceOp::Mean, purpose).wait();
    return;
  }
  const auto options = flat.options().dtype(wire_);
  if (!room_.defined() || room_.numel() < flat.numel() ||
      room_.device() != flat.device()) {
    room_ = at::empty({flat.numel()}, options);
  }
  const at::Tensor wire = room_.narrow(0, 0, flat.numel());
  // fp16 is divided before the cast: a value up to n * 65504 stays finite.
  const bool before = wire_ == at::kHalf;
  const float scale =
      before ? 1.0f / static_cast<float>(communicator.size()) : 1.0f;
  ops::scale_cast(flat, scale, wire);
  communicator
      .all_reduce(
          wire, before ? comm::ReduceOp::Sum : comm::ReduceOp::Mean, purpose)
      .wait();
  ops::scale_cast(wire, 1.0f, flat);
}

}  // namespace abtrain::compress
