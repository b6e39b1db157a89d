#include "ops/hadamard.h"

#include <bit>

#include "base/error.h"
#include "device/tensor_text.h"
#include "kernels/blocks/hadamard.h"
#include "ops/cpu/hadamard.h"
#include "ops/launch.h"

namespace abtrain::ops {

int exact_log2(std::int64_t number, const char* what) {
  ABT_ASSERT(
      number >= 1 && number <= (std::int64_t{1} << 30) &&
          std::has_single_bit(static_cast<std::uint64_t>(number)),
      "{}: expected a power of two up to 2^30, got {}", what, number);
  return std::countr_zero(static_cast<std::uint64_t>(number));
}

void hadamard(const at::Tensor& x, std::int64_t block) {
  const int log_size = exact_log2(block, "hadamard: block");
  ABT_ASSERT(
      x.dim() == 1 && x.is_contiguous() && x.scalar_type() == at::kFloat && x.numel() % block == 0,
      "hadamard: expected a flat fp32 tensor of whole blocks of {}, got {} {}", block,
      x.scalar_type(), x.sizes());
  if (x.is_cuda()) {
    float* data = x.mutable_data_ptr<float>();
    ABT_ASSERT(
        reinterpret_cast<std::uintptr_t>(data) % 16 == 0,
        "hadamard: expected data aligned to 16 bytes on CUDA");
    launch("hadamard", x.device(), [&](void* stream) {
      return kernels::hadamard(data, x.numel(), log_size, stream);
    });
  } else {
    hadamard_cpu(x, log_size);
  }
}

}  // namespace abtrain::ops
