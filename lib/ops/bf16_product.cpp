#include "ops/bf16_product.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "device/tensor_text.h"
#include "ops/bf16_blocks.h"

// A function of the MKL inside LibTorch; builds without MKL lack it. LibTorch's own products in
// bf16 round their results to bf16, and for small matrices their set-up costs more than bf16 saves.
extern "C" [[gnu::weak]] void cblas_gemm_bf16bf16f32(
    int layout, int transposes_a, int transposes_b, int m, int n, int k, float alpha, const void* a,
    int row_of_a, const void* b, int row_of_b, float beta, float* c, int row_of_c);

namespace abtrain::ops {
namespace {

// The layout of a matrix with contiguous rows or contiguous columns.
struct Stored {
  bool transposed;
  std::int64_t row;  // elements from one row, or column if transposed, to the next
};

Stored stored(const at::Tensor& matrix, at::ScalarType type) {
  const bool by_rows = matrix.dim() == 2 && (matrix.stride(1) == 1 || matrix.size(1) == 1);
  ABT_ASSERT(
      matrix.dim() == 2 && matrix.is_cpu() && matrix.scalar_type() == type &&
          (by_rows || matrix.stride(0) == 1 || matrix.size(0) == 1),
      "expected a {} matrix with contiguous rows or columns, got {}{} with strides {}", type,
      matrix.scalar_type(), matrix.sizes(), matrix.strides());
  const int side = by_rows ? 1 : 0;
  return {!by_rows, std::max(matrix.stride(1 - side), matrix.size(side))};
}

}  // namespace

void bf16_product(
    const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, float beta, float alpha) {
  if (c.is_cuda()) {
    at::Tensor result = c;
    at::addmm_out(result, c, a, b, at::kFloat, beta, alpha);
    return;
  }
  const Stored of_c = stored(c, at::kFloat);
  if (of_c.transposed) {
    bf16_product(b.t(), a.t(), c.t(), beta, alpha);
    return;
  }
  const Stored of_a = stored(a, at::kBFloat16);
  const Stored of_b = stored(b, at::kBFloat16);
  ABT_ASSERT(
      a.size(0) == c.size(0) && a.size(1) == b.size(0) && b.size(1) == c.size(1),
      "shapes {} and {} do not give {}", a.sizes(), b.sizes(), c.sizes());
  if (c.numel() == 0) {
    return;
  }
  const std::int64_t m = c.size(0);
  const std::int64_t n = c.size(1);
  const std::int64_t k = a.size(1);
  float* const result = c.mutable_data_ptr<float>();
  if (bf16_blocks_are_fast() && k > 0) {
    bf16_in_blocks(
        {a.const_data_ptr<at::BFloat16>(), of_a.transposed, of_a.row},
        {b.const_data_ptr<at::BFloat16>(), of_b.transposed, of_b.row}, result, of_c.row, m, n, k,
        beta, alpha);
    return;
  }
  if (cblas_gemm_bf16bf16f32 == nullptr) {
    const at::Tensor product = at::mm(a.to(at::kFloat), b.to(at::kFloat)).mul_(alpha);
    beta == 0 ? c.copy_(product) : c.mul_(beta).add_(product);
    return;
  }
  constexpr int kRowMajor = 101;
  constexpr int kPlain = 111;
  constexpr int kTransposed = 112;
  const auto narrow = [](std::int64_t size) { return static_cast<int>(size); };
  cblas_gemm_bf16bf16f32(
      kRowMajor, of_a.transposed ? kTransposed : kPlain, of_b.transposed ? kTransposed : kPlain,
      narrow(m), narrow(n), narrow(k), alpha, a.const_data_ptr(), narrow(of_a.row),
      b.const_data_ptr(), narrow(of_b.row), beta, result, narrow(of_c.row));
}

std::int64_t bf16_product_pays_from(bool thin) {
  constexpr std::int64_t kInBlocks = 200'000;
  constexpr std::int64_t kInMkl = 4'000'000;
  if (bf16_blocks_are_fast()) {
    return kInBlocks;
  }
  return thin ? std::numeric_limits<std::int64_t>::max() : kInMkl;
}

}  // namespace abtrain::ops
