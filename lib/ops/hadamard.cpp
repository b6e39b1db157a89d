#include "ops/hadamard.h"

#include <bit>

#include "base/error.h"
#include "ops/hadamard_backends.h"

namespace abtrain::ops {

int exact_log2(std::int64_t number, const char* what) {
  ABT_ASSERT(
      number >= 1 && number <= (std::int64_t{1} << 30) &&
          std::has_single_bit(static_cast<std::uint64_t>(number)),
      what,
      ": expected a power of two up to 2^30, got ",
      number);
  return std::countr_zero(static_cast<std::uint64_t>(number));
}

void hadamard(const at::Tensor& x, std::int64_t block) {
  const int log_size = exact_log2(block, "hadamard: block");
  ABT_ASSERT(
      x.dim() == 1 && x.is_contiguous() && x.scalar_type() == at::kFloat &&
          x.numel() % block == 0,
      "hadamard: expected flat fp32 in whole blocks of ",
      block,
      ", got ",
      x.scalar_type(),
      " ",
      x.sizes());
  if (x.is_cuda()) {
    hadamard_cuda(x, log_size);
  } else {
    hadamard_cpu(x, log_size);
  }
}

}  // namespace abtrain::ops
