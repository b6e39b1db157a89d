#include "device/span.h"

#include "device/stream.h"

namespace abtrain::device {

Span::Span(c10::Device device) {
  if (device.is_cuda()) {
    first_.emplace(device.type(), c10::EventFlag::BACKEND_DEFAULT);  // with timing
    first_->record(current_stream(device));
  }
}

void Span::end() {
  if (first_) {
    second_.emplace(first_->device_type(), first_->flag());
    second_->record(current_stream(first_->device()));
  } else {
    seconds_ = watch_.seconds();
  }
}

std::optional<double> Span::seconds(bool wait) const {
  if (!first_) {
    return seconds_;
  }
  if (wait) {
    second_->synchronize();
  }
  if (!second_->query()) {
    return std::nullopt;
  }
  return first_->elapsedTime(*second_) * 1e-3;  // from milliseconds
}

}  // namespace abtrain::device
