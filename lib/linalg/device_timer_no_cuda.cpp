#include <chrono>

#include "linalg/exact_drivers.h"

namespace abtrain::linalg {

double time_on_device(const std::function<void()>& body, c10::Device) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  const std::chrono::duration<double, std::milli> spent =
      std::chrono::steady_clock::now() - begin;
  return spent.count();
}

}  // namespace abtrain::linalg
