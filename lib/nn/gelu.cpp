#include "nn/gelu.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "ops/cpu/simd.h"

namespace abtrain::nn {
namespace {

template <bool kSloped>
ABT_INLINE void gelu_of(
    const float* __restrict x, float* __restrict y, float* __restrict slope, std::int64_t count) {
  constexpr float kTwo = 2 * 0.797884561f;  // 2 k
  for (std::int64_t i = 0; i < count; ++i) {
    const float square = x[i] * x[i];
    const float t = -kTwo * x[i] * __builtin_fmaf(0.044715f, square, 1.0f);
    // s is 1 / (1 + exp(t)); for |t| > 87 it is 0 or 1 up to fp32's precision.
    const float bounded = t > 87.0f ? 87.0f : t < -87.0f ? -87.0f : t;
    const float s = 1.0f / (1.0f + ops::exponential(bounded));
    y[i] = x[i] * s;
    if constexpr (kSloped) {
      const float inner = kTwo * __builtin_fmaf(3 * 0.044715f, square, 1.0f);
      slope[i] = s + y[i] * (1.0f - s) * inner;
    }
  }
}

// slope: undefined, or of x's size.
void gelu_of(const at::Tensor& x, const at::Tensor& y, const at::Tensor& slope) {
  constexpr std::int64_t kGrain = 16384;
  const float* from = x.const_data_ptr<float>();
  float* values = y.mutable_data_ptr<float>();
  float* slopes = slope.defined() ? slope.mutable_data_ptr<float>() : nullptr;
  at::parallel_for(0, x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    ops::vectorized([&]() ABT_INLINED {
      if (slopes != nullptr) {
        gelu_of<true>(from + begin, values + begin, slopes + begin, end - begin);
      } else {
        gelu_of<false>(from + begin, values + begin, nullptr, end - begin);
      }
    });
  });
}

class GeluTanh : public torch::autograd::Function<GeluTanh> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input) {
    const at::Tensor x = input.contiguous();
    const at::Tensor y = at::empty_like(x);
    const at::Tensor slope = at::empty_like(x);
    gelu_of(x, y, slope);
    context->save_for_backward({slope});
    return y;
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context, const torch::autograd::variable_list& gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

}  // namespace

at::Tensor gelu_tanh(const at::Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) {
    return at::gelu(x, "tanh");
  }
  if (at::GradMode::is_enabled() && x.requires_grad()) {
    return GeluTanh::apply(x);
  }
  const at::Tensor y = at::empty_like(x, x.options(), at::MemoryFormat::Contiguous);
  gelu_of(x.contiguous(), y, {});
  return y;
}

}  // namespace abtrain::nn
