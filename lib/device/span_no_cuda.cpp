#include "base/clock.h"
#include "device/span.h"

namespace abtrain::device {

struct Span::Impl {
  Stopwatch watch;
  double seconds = 0;
};

Span::Span(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Span::Span(Span&&) noexcept = default;
Span& Span::operator=(Span&&) noexcept = default;
Span::~Span() = default;

Span Span::begin(c10::Device) {
  return Span(std::make_unique<Impl>());
}

void Span::end() {
  impl_->seconds = impl_->watch.seconds();
}

std::optional<double> Span::seconds(bool) const {
  return impl_->seconds;
}

}  // namespace abtrain::device
