#include "data/arrays/finite.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/error.h"

namespace abtrain::data {
namespace {

// Half the largest fp32 number, so that the difference of two numbers is finite in fp32.
constexpr double kMaxFinite = std::numeric_limits<float>::max() / 2;

// Compares magnitudes by their bits read as integers, which have the same order: a loop over
// integers compares many at once.
template <class Bits>
Bits largest_bits(const Bits* bits, std::int64_t begin, std::int64_t end) {
  Bits largest = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    largest = std::max<Bits>(largest, bits[i] & std::numeric_limits<Bits>::max());
  }
  return largest;
}

template <class Float, class Bits>
double largest_as(const at::Tensor& numbers, const auto& refuse) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 18;
  const auto* bits = static_cast<const Bits*>(numbers.const_data_ptr());
  const Bits largest = at::parallel_reduce(
      0, numbers.numel(), kGrain, Bits{0},
      [&](std::int64_t begin, std::int64_t end, Bits before) {
        return std::max(before, largest_bits(bits, begin, end));
      },
      [](Bits a, Bits b) { return std::max(a, b); });
  const auto magnitude_of = [](Bits of) {
    return std::abs(static_cast<double>(static_cast<float>(std::bit_cast<Float>(of))));
  };
  if (!(magnitude_of(largest) <= kMaxFinite)) {
    const auto* first = std::find_if(bits, bits + numbers.numel(), [&](Bits each) {
      return !(magnitude_of(each) <= kMaxFinite);
    });
    refuse(first - bits, static_cast<double>(std::bit_cast<Float>(*first)));
  }
  return magnitude_of(largest);
}

}  // namespace

double largest_magnitude(const at::Tensor& numbers, const std::string& path, const char* name) {
  const auto refuse = [&](std::int64_t place, double found) {
    const std::int64_t each = numbers.numel() / numbers.size(0);
    throw Error(
        ErrorKind::DamagedData,
        formatted(
            "{}: {} of example {}, number {}: expected a finite number{}, found {}", path, name,
            place / each, place % each, std::isfinite(found) ? " of at most 1.7e38" : "",
            std::isnan(found) ? "nan" : formatted("{}", found)));
  };
  switch (numbers.scalar_type()) {
    case at::kDouble:
      return largest_as<double, std::int64_t>(numbers, refuse);
    case at::kHalf:
      return largest_as<c10::Half, std::int16_t>(numbers, refuse);
    case at::kBFloat16:
      return largest_as<c10::BFloat16, std::int16_t>(numbers, refuse);
    default:
      ABT_ASSERT(numbers.scalar_type() == at::kFloat, "numbers of another type");
      return largest_as<float, std::int32_t>(numbers, refuse);
  }
}

}  // namespace abtrain::data
