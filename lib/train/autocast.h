// Mixed precision of a forward pass. Nothing else may run under it: factors and
// their products stay in fp32 and fp64.
#pragma once

#include <ATen/autocast_mode.h>

namespace abtrain::train {

// While an object lives, matrix products and convolutions of this thread are
// computed in `precision`: kBFloat16, or kFloat, which changes nothing.
class Autocast {
 public:
  Autocast(at::ScalarType precision, at::DeviceType device)
      : on_(precision != at::kFloat), device_(device) {
    if (on_) {
      at::autocast::set_autocast_enabled(device_, true);
      at::autocast::set_autocast_dtype(device_, precision);
      // Each weight is used once per pass, so caching its cast saves nothing.
      at::autocast::set_autocast_cache_enabled(false);
    }
  }
  ~Autocast() {
    if (on_) {
      at::autocast::set_autocast_enabled(device_, false);
      at::autocast::set_autocast_cache_enabled(true);
    }
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
  at::DeviceType device_;
};

}  // namespace abtrain::train
