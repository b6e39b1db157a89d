// A number that each step computes and the host reads without waiting for the
// step: at once on the CPU; on a GPU, while the next step is running.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "device/stream.h"

namespace abtrain::train {

class Readback {
 public:
  struct Reading {
    std::int64_t step;
    double value;
  };
  // On the CPU, returns `scalar`. On a GPU, queues `scalar` and returns the previous one (nullopt
  // at the first call), so that the host need not wait for `step`.
  std::optional<Reading> exchange(std::int64_t step, const at::Tensor& scalar);
  // Waits for the queued scalar and returns it; nullopt if there is none.
  std::optional<Reading> flush();

 private:
  at::Tensor host_;  // page-locked
  std::int64_t step_ = -1;
  device::Event copied_;
};

}  // namespace abtrain::train
