#include "linalg/eigen.h"

#include <ATen/ops/cat.h>

#include "base/error.h"

namespace abtrain::linalg {

std::vector<std::vector<double>> read_back(
    const std::vector<Pending>& pending) {
  if (pending.empty()) {
    return {};
  }
  std::vector<at::Tensor> pieces;
  for (const Pending& p : pending) {
    pieces.push_back(p.values.reshape({-1}));
    pieces.push_back(p.info.reshape({-1}).to(at::kDouble));
  }
  const auto host = at::cat(pieces).cpu();
  const double* next = host.const_data_ptr<double>();
  std::vector<std::vector<double>> values;
  for (const Pending& p : pending) {
    values.emplace_back(next, next + p.values.numel());
    next += p.values.numel();
    for (std::int64_t i = 0; i < p.info.numel(); ++i, ++next) {
      ABT_CHECK(
          *next == 0,
          Diverged,
          "{}: cuSOLVER found no decomposition of matrix {} of {} (info {}, "
          "expected 0)",
          p.what,
          i,
          p.info.numel(),
          static_cast<std::int64_t>(*next));
    }
  }
  return values;
}

}  // namespace abtrain::linalg
