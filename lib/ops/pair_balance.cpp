#include "ops/pair_balance.h"

#include <ATen/ops/empty.h>

#include "ops/flat_check.h"
#include "ops/pair_balance_backends.h"

namespace abtrain::ops {

void pair_balance(
    const at::Tensor& sum,
    const at::Tensor& rows,
    const at::Tensor& signs) {
  const c10::Device device = sum.device();
  const std::int64_t numel = sum.numel();
  ABT_ASSERT(
      rows.dim() == 2 && rows.size(1) == numel && rows.is_contiguous(),
      "pair_balance: expected rows of ",
      numel,
      " numbers, got ",
      rows.sizes());
  check_flat(sum, at::kFloat, numel, device, "pair_balance: sum");
  check_flat(
      rows.view({-1}), at::kFloat, rows.numel(), device, "pair_balance: rows");
  check_flat(signs, at::kChar, rows.size(0), device, "pair_balance: signs");
  if (numel == 0) {
    signs.fill_(1);
    return;
  }
  const std::int64_t blocks = (numel + kernels::kBlock - 1) / kernels::kBlock;
  const at::Tensor parts = at::empty({blocks}, sum.options());
  const kernels::PairBalance job{
      sum.mutable_data_ptr<float>(),
      rows.const_data_ptr<float>(),
      numel,
      static_cast<int>(rows.size(0)),
      parts.mutable_data_ptr<float>(),
      signs.mutable_data_ptr<std::int8_t>()};
  device.is_cuda() ? pair_balance_cuda(job, device) : pair_balance_cpu(job);
}

}  // namespace abtrain::ops
