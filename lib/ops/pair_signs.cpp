#include "ops/pair_signs.h"

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

void pair_signs(const at::Tensor& triangle, const at::Tensor& signs) {
  const c10::Device device = signs.device();
  const std::int64_t rows = signs.numel();
  ABT_ASSERT(rows >= 1 && rows <= kMaxPairRows, "pair_signs: {} rows", rows);
  const kernels::PairSigns job{
      flat<const float>(triangle, rows * (rows + 1) / 2, device, "pair_signs: triangle"),
      static_cast<int>(rows), flat<std::int8_t>(signs, rows, device, "pair_signs: signs")};
  dispatch("pair_signs", job, device, kernels::pair_signs);
}

}  // namespace abtrain::ops
