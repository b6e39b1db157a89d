#include "train/divergence.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>

#include <cmath>

#include "base/error.h"

namespace abtrain::train {

namespace {

constexpr const char* kAdvice =
    "A lower optimizer.lr, a longer warm-up or train.clip_norm may help";

// The name of the first parameter that is not finite; "" if all are finite.
std::string first_broken(const optim::ParameterBlock& block) {
  for (const optim::ParameterRef& p : block.parameters()) {
    if (!p.tensor->isfinite().all().item<bool>()) {
      return p.name;
    }
  }
  return "";
}

}  // namespace

void check_finite(
    const char* what, const std::optional<Readback::Reading>& reading, int worker,
    const optim::ParameterBlock& block) {
  if (!reading || std::isfinite(reading->value)) {
    return;
  }
  const std::string broken = first_broken(block);
  throw StepError(
      ErrorKind::Diverged, reading->step + 1,
      formatted(
          "the {} of worker {} is {}; {}. {}", what, worker,
          std::isnan(reading->value) ? "nan" : formatted("{}", reading->value),
          broken.empty() ? "all parameters are still finite"
                         : formatted("the first parameter that is not finite is '{}'", broken),
          kAdvice));
}

void check_parameters(std::int64_t step, int worker, optim::ParameterBlock& block) {
  if (block.numel() > 0 && !block.values().isfinite().all().item<bool>()) {
    throw StepError(
        ErrorKind::Diverged, step,
        formatted(
            "parameter '{}' of worker {} is not finite after the update. {}", first_broken(block),
            worker, kAdvice));
  }
}

void check_buffers(std::int64_t step, int worker, const nn::Model& model) {
  for (const nn::NamedBuffer& b : model.buffers()) {
    if (!b.tensor->isfinite().all().item<bool>()) {
      throw StepError(
          ErrorKind::Diverged, step,
          formatted(
              "the running statistics '{}' of worker {} are not finite: a batch has given this "
              "norm values that are not finite, too large for fp32, or a single one per channel",
              b.name, worker));
    }
  }
}

}  // namespace abtrain::train
