#include "train/divergence.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>

#include <cmath>

#include "base/error.h"

namespace abtrain::train {

namespace {

constexpr const char* kAdvice =
    "A lower optimizer.lr, a longer warm-up or train.clip_norm may help";

// The name of the first parameter that is not finite; null if all are finite.
const std::string* first_broken(const optim::ParameterBlock& block) {
  for (std::size_t i = 0; i < block.parameters().size(); ++i) {
    if (!block.value_views()[i].isfinite().all().item<bool>()) {
      return &block.parameters()[i].name;
    }
  }
  return nullptr;
}

}  // namespace

void check_finite(
    const char* what,
    const std::optional<Readback::Reading>& reading,
    int worker,
    const optim::ParameterBlock& block) {
  if (!reading || std::isfinite(reading->value)) {
    return;
  }
  const std::string* const broken = first_broken(block);
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
          broken == nullptr ? std::string("all parameters are still finite")
                            : str("the first parameter that is not finite is '",
                                  *broken,
                                  "'"),
          ". ",
          kAdvice));
}

void check_parameters(
    std::int64_t step,
    int worker,
    optim::ParameterBlock& block) {
  if (block.numel() == 0 || block.values().isfinite().all().item<bool>()) {
    return;
  }
  const std::string* const broken = first_broken(block);
  throw Error(
      ErrorKind::Diverged,
      str("step ",
          step,
          ": parameter '",
          broken == nullptr ? "" : *broken,
          "' of worker ",
          worker,
          " is not finite after the update. ",
          kAdvice));
}

}  // namespace abtrain::train
