#include "linalg/driver_choice.h"

#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/error.h"
#include "linalg/gram.h"

namespace abtrain::linalg {
namespace {

constexpr double kSameValues = 1e-6;  // of the largest singular value
constexpr double kOrthonormal = 1e-8;

// What is wrong with a result; empty if nothing is.
std::string fault_of(
    const std::vector<Eigenpairs>& got,
    const std::vector<Eigenpairs>& wanted) {
  if (got.size() != wanted.size()) {
    return "a different number of results";
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto& left = got[i].values;
    const auto& right = wanted[i].values;
    if (left.size() != right.size()) {
      return "a different number of values";
    }
    for (std::size_t j = 0; j < left.size(); ++j) {
      // Written so that a NaN is a fault as well.
      if (!(std::abs(singular_value(left[j]) - singular_value(right[j])) <=
            kSameValues * singular_value(right.front()))) {
        return "different singular values";
      }
    }
    auto product = at::mm(got[i].vectors.t(), got[i].vectors);
    product.diagonal().sub_(1);
    if (!(product.abs().max().item<double>() <= kOrthonormal)) {
      return "vectors that are not orthonormal";
    }
  }
  return "";
}

}  // namespace

std::vector<Eigenpairs> DriverChoice::run(
    const BatchShape& shape,
    const std::vector<Driver>& drivers,
    const Timer& timer) {
  ABT_ASSERT(!drivers.empty(), "expected at least one driver");
  const auto known = choices_.find(shape);
  if (known != choices_.end()) {
    const auto driver =
        std::find_if(drivers.begin(), drivers.end(), [&](const Driver& d) {
          return d.name == known->second.kept;
        });
    ABT_ASSERT(driver != drivers.end(), "the kept driver is gone");
    return driver->run();
  }
  if (drivers.size() == 1) {
    choices_[shape] = {drivers.front().name, {}};
    return drivers.front().run();
  }
  Choice choice;
  std::vector<Eigenpairs> yardstick;
  std::vector<Eigenpairs> best;
  double fastest = 0;
  for (const Driver& driver : drivers) {
    const bool first = choice.tried.empty();
    TimedDriver timed{driver.name, 0, ""};
    std::vector<Eigenpairs> result;
    try {
      driver.run();
      timed.milliseconds = timer([&] { result = driver.run(); });
      timed.fault = first ? "" : fault_of(result, yardstick);
    } catch (const std::exception& error) {
      if (first) {
        throw;
      }
      timed.fault = error.what();
    }
    if (first) {
      yardstick = result;
    }
    if (timed.fault.empty() && (first || timed.milliseconds < fastest)) {
      fastest = timed.milliseconds;
      choice.kept = driver.name;
      best = std::move(result);
    }
    choice.tried.push_back(timed);
  }
  choices_[shape] = choice;
  return best;
}

}  // namespace abtrain::linalg
