#include "orders/sign_queue.h"

#include <ATen/ops/empty.h>

namespace abtrain::orders {

void SignQueue::push(const at::Tensor& signs) {
  at::Tensor host =
      at::empty({signs.numel()}, at::TensorOptions(at::kChar).pinned_memory(signs.is_cuda()));
  host.copy_(signs, /*non_blocking=*/true);
  copies_.push_back({host, device::Event::record(signs.device())});
}

void SignQueue::take(bool wait, const std::function<void(const std::vector<int>& signs)>& take) {
  // The last copy queued on a GPU may still be running; earlier ones are usually done.
  while (copies_.size() > 1 || (!copies_.empty() && (wait || !copies_.front().host.is_pinned()))) {
    const Copy copy = std::move(copies_.front());
    copies_.pop_front();
    copy.copied.wait();
    const auto* begin = copy.host.const_data_ptr<std::int8_t>();
    take({begin, begin + copy.host.numel()});
  }
}

}  // namespace abtrain::orders
