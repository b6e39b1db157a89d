// Mixed precision of a forward pass. Nothing else may run under it: factors and
// their products stay in fp32 and fp64.
#pragma once

#include <ATen/autocast_mode.h>

#include <string>

namespace abtrain::train {

// While an object lives, matrix products and convolutions of this thread are
// computed in bf16 if `precision` is "bf16". No effect for "fp32".
class Autocast {
 public:
  Autocast(const std::string& precision, at::DeviceType device)
      : on_(precision == "bf16"), device_(device) {
    if (on_) {
      at::autocast::set_autocast_enabled(device_, true);
      at::autocast::set_autocast_dtype(device_, at::kBFloat16);
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
