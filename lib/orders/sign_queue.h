// Signs computed on a device, on their way to the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "device/stream.h"

namespace abtrain::orders {

class SignQueue {
 public:
  // Signs are int8, 1 or -1.
  void push(const at::Tensor& signs);
  // Calls take(signs) for the signs that have arrived, in the order of push(),
  // without waiting for a GPU; with `wait`, for all of them.
  template <class Take>
  void take(bool wait, const Take& take) {
    while (!empty(wait)) {
      take(pop());
    }
  }

 private:
  struct Copy {
    at::Tensor host;
    device::Event copied;
  };
  bool empty(bool wait) const;
  std::vector<int> pop();

  std::deque<Copy> copies_;
};

}  // namespace abtrain::orders
