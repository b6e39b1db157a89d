#include "ops/pair_signs.h"

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

void pair_signs(const at::Tensor& triangle, const at::Tensor& signs) {
  const c10::Device device = signs.device();
  const std::int64_t rows = signs.numel();
  ABT_ASSERT(rows >= 1 && rows <= kMaxPairRows, "pair_signs: {} rows", rows);
  check_flat(triangle, at::kFloat, rows * (rows + 1) / 2, device, "pair_signs: triangle");
  check_flat(signs, at::kChar, rows, device, "pair_signs: signs");
  const kernels::PairSigns job{
      triangle.const_data_ptr<float>(), static_cast<int>(rows),
      signs.mutable_data_ptr<std::int8_t>()};
  dispatch("pair_signs", job, device, kernels::pair_signs);
}

}  // namespace abtrain::ops
