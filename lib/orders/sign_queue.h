// A Balancer's decisions (signs), on their way from a device to the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "device/stream.h"

namespace abtrain::orders {

class SignQueue {
 public:
  // Signs are int8, 1 or -1.
  void push(const at::Tensor& signs);
  // Calls take(signs) for each push(), in order. Without `wait`, leaves out the last signs from a
  // GPU, which may still be under way.
  void take(bool wait, const std::function<void(const std::vector<int>& signs)>& take);

 private:
  struct Copy {
    at::Tensor host;
    device::Event copied;
  };
  std::deque<Copy> copies_;
};

}  // namespace abtrain::orders
