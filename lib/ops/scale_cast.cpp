#include "ops/scale_cast.h"

#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>

#include <algorithm>

#include "base/error.h"
#include "device/tensor_text.h"
#include "ops/cpu/convert.h"

namespace abtrain::ops {

namespace {

constexpr std::int64_t kTile = 2048;

bool flat_float(const at::Tensor& t) {
  const auto type = t.scalar_type();
  return t.dim() == 1 && t.is_contiguous() &&
         (type == at::kFloat || type == at::kHalf || type == at::kBFloat16);
}

template <class In, class Out>
void scale_cast_tiles(const In* in, float scale, Out* out, std::int64_t count) {
  float scratch[kTile];
  for (std::int64_t i = 0; i < count; i += kTile) {
    const std::int64_t n = std::min(kTile, count - i);
    to_float(in + i, scratch, n);
    for (std::int64_t k = 0; k < n; ++k) {
      scratch[k] *= scale;
    }
    from_float(scratch, out + i, n);
  }
}

// Calls `call` with a null pointer to the C++ type of the dtype.
template <class Call>
void with_type(at::ScalarType type, const Call& call) {
  switch (type) {
    case at::kHalf:
      return call(static_cast<c10::Half*>(nullptr));
    case at::kBFloat16:
      return call(static_cast<c10::BFloat16*>(nullptr));
    default:
      return call(static_cast<float*>(nullptr));
  }
}

}  // namespace

void scale_cast_by_promotion(const at::Tensor& in, float scale, const at::Tensor& out) {
  at::Tensor result = out;
  at::mul_out(result, in, at::full({1}, scale, in.options().dtype(at::kFloat)));
}

void scale_cast(const at::Tensor& in, float scale, const at::Tensor& out) {
  ABT_ASSERT(
      flat_float(in) && flat_float(out) && in.numel() == out.numel() && in.device() == out.device(),
      "scale_cast: expected flat floating-point tensors of one length, got "
      "{}{} to {}{}",
      in.scalar_type(), in.sizes(), out.scalar_type(), out.sizes());
  if (scale == 1 && in.scalar_type() == out.scalar_type()) {
    out.copy_(in);
    return;
  }
  if (in.is_cuda()) {
    scale_cast_by_promotion(in, scale, out);
    return;
  }
  with_type(in.scalar_type(), [&]<class In>(In*) {
    with_type(out.scalar_type(), [&]<class Out>(Out*) {
      scale_cast_tiles(in.const_data_ptr<In>(), scale, out.mutable_data_ptr<Out>(), in.numel());
    });
  });
}

}  // namespace abtrain::ops
