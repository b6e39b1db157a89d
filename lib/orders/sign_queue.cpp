#include "orders/sign_queue.h"

#include <ATen/ops/empty.h>

namespace abtrain::orders {

void SignQueue::push(const at::Tensor& signs) {
  at::Tensor host =
      at::empty({signs.numel()}, at::TensorOptions(at::kChar).pinned_memory(signs.is_cuda()));
  host.copy_(signs, /*non_blocking=*/true);
  copies_.push_back({host, device::Event::record(signs.device())});
}

// The last copy that a GPU was given may still be running; those before it are
// done.
bool SignQueue::empty(bool wait) const {
  return copies_.empty() || (!wait && copies_.size() == 1 && copies_.front().host.is_pinned());
}

std::vector<int> SignQueue::pop() {
  copies_.front().copied.wait();
  const at::Tensor host = copies_.front().host;
  copies_.pop_front();
  const auto* begin = host.const_data_ptr<std::int8_t>();
  return {begin, begin + host.numel()};
}

}  // namespace abtrain::orders
