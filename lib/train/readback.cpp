#include "train/readback.h"

#include <ATen/ops/empty.h>

namespace abtrain::train {

std::optional<Readback::Reading> Readback::exchange(std::int64_t step, const at::Tensor& scalar) {
  if (scalar.is_cpu()) {
    return Reading{step, scalar.item<double>()};
  }
  const std::optional<Reading> before = flush();
  if (!host_.defined()) {
    host_ = at::empty({}, at::TensorOptions().dtype(at::kDouble).pinned_memory(true));
  }
  host_.copy_(scalar.detach().to(at::kDouble), /*non_blocking=*/true);
  copied_ = device::Event::record(scalar.device());
  step_ = step;
  return before;
}

std::optional<Readback::Reading> Readback::flush() {
  if (step_ < 0) {
    return std::nullopt;
  }
  copied_.wait();
  const Reading reading{step_, host_.item<double>()};
  step_ = -1;
  return reading;
}

}  // namespace abtrain::train
