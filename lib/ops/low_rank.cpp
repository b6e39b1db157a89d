#include "ops/low_rank.h"

#include <ATen/ops/addmm.h>

#include <algorithm>

#include "base/error.h"
#include "device/tensor_text.h"
#include "ops/cpu/simd.h"

namespace abtrain::ops {

namespace {

struct Shape {
  std::int64_t rank, n, m;
};

// Adds kRanks ranks starting at `first`, times sign, to a row of `out`, or overwrites the row if
// `begin`. It adds rank by rank, so results do not depend on the grouping of ranks.
template <int kRanks>
ABT_INLINE void add_ranks(
    const float* p, const float* q, float* __restrict row, const Shape& shape, std::int64_t i,
    std::int64_t first, float sign, bool begin) {
  float factor[kRanks];
  for (int k = 0; k < kRanks; ++k) {
    factor[k] = sign * p[(first + k) * shape.n + i];
  }
  const float* __restrict from = q + first * shape.m;
  for (std::int64_t j = 0; j < shape.m; ++j) {
    float sum = begin ? 0.0f : row[j];
    for (int k = 0; k < kRanks; ++k) {
      sum = __builtin_fmaf(factor[k], from[k * shape.m + j], sum);
    }
    row[j] = sum;
  }
}

ABT_INLINE void add_product(
    const float* p, const float* q, float* out, const Shape& shape, float sign, bool fresh) {
  constexpr int kBlock = 4;
  for (std::int64_t i = 0; i < shape.n; ++i) {
    float* row = out + i * shape.m;
    std::int64_t k = 0;
    for (; k + kBlock <= shape.rank; k += kBlock) {
      add_ranks<kBlock>(p, q, row, shape, i, k, sign, fresh && k == 0);
    }
    for (; k < shape.rank; ++k) {
      add_ranks<1>(p, q, row, shape, i, k, sign, fresh && k == 0);
    }
  }
}

bool is_matrix(const at::Tensor& t, const at::Tensor& like) {
  return t.dim() == 2 && t.is_contiguous() && t.scalar_type() == at::kFloat &&
         t.device() == like.device();
}

// out = sign P^T Q, added to what `out` holds unless `fresh`.
void multiply(
    const at::Tensor& p, const at::Tensor& q, const at::Tensor& out, float sign, bool fresh) {
  ABT_ASSERT(
      is_matrix(p, out) && is_matrix(q, out) && is_matrix(out, out) && p.size(0) == q.size(0) &&
          p.size(0) >= 1 && out.size(0) == p.size(1) && out.size(1) == q.size(1),
      "low_rank_product: expected fp32 matrices that match, got P {}, Q {} and "
      "out {}",
      p.sizes(), q.sizes(), out.sizes());
  if (out.is_cuda()) {
    at::Tensor result = out;
    at::addmm_out(result, out, p.t(), q, fresh ? 0 : 1, sign);
    return;
  }
  const Shape shape{p.size(0), p.size(1), q.size(1)};
  const auto* const left = p.const_data_ptr<float>();
  const auto* const right = q.const_data_ptr<float>();
  auto* const to = out.mutable_data_ptr<float>();
  vectorized([&]() ABT_INLINED { add_product(left, right, to, shape, sign, fresh); });
}

}  // namespace

void low_rank_product(const at::Tensor& p, const at::Tensor& q, const at::Tensor& out) {
  multiply(p, q, out, 1, true);
}

void subtract_low_rank_product(const at::Tensor& p, const at::Tensor& q, const at::Tensor& out) {
  multiply(p, q, out, -1, false);
}

}  // namespace abtrain::ops
