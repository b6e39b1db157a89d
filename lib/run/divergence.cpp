#include "run/divergence.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>

#include <cmath>

#include "base/error.h"

namespace abtrain::run {

void check_finite(
    const char* what,
    const std::optional<Readback::Reading>& reading,
    int worker,
    const optim::ParameterBlock& block) {
  if (!reading || std::isfinite(reading->value)) {
    return;
  }
  std::string where = "all parameters are still finite";
  for (std::size_t i = 0; i < block.parameters().size(); ++i) {
    if (!block.value_views()[i].isfinite().all().item<bool>()) {
      where = str(
          "the first parameter that is not finite is '",
          block.parameters()[i].name,
          "'");
      break;
    }
  }
  throw Error(
      ErrorKind::Diverged,
      str("step ",
          reading->step + 1,
          ": the ",
          what,
          " of worker ",
          worker,
          " is ",
          std::isnan(reading->value) ? "nan" : str(reading->value),
          "; ",
          where,
          ". A lower optimizer.lr, a longer warm-up or train.clip_norm may "
          "help"));
}

}  // namespace abtrain::run
