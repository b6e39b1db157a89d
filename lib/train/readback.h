// A number that each step computes, read by the host without waiting for the
// step: on the CPU at once, on a GPU while the next step is under way.
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
  // Queues the scalar of `step`; returns what can be read without waiting for
  // it: itself on the CPU, the one before on a GPU (none at the first).
  std::optional<Reading> exchange(std::int64_t step, const at::Tensor& scalar);
  // Waits for what is queued.
  std::optional<Reading> flush();

 private:
  at::Tensor host_;  // page-locked
  std::int64_t step_ = -1;
  device::Event copied_;
};

}  // namespace abtrain::train
