#include "compress/bucket.h"

#include <algorithm>
#include <functional>

#include "ops/scale_cast.h"

namespace abtrain::compress {

std::int64_t Bucket::numel() const {
  return std::transform_reduce(
      slots.begin(), slots.end(), std::int64_t{0}, std::plus<>(), std::mem_fn(&Slot::numel));
}

std::vector<Range> Bucket::ranges() const {
  return ranges_of(slots);
}

std::vector<Range> ranges_of(const std::vector<Slot>& slots) {
  std::vector<Range> runs;
  for (const Slot& slot : slots) {
    runs.push_back({slot.offset, slot.numel()});
  }
  std::ranges::sort(runs, {}, &Range::begin);
  std::vector<Range> joined;
  for (const Range& run : runs) {
    if (!joined.empty() && joined.back().begin + joined.back().size == run.begin) {
      joined.back().size += run.size;
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

std::int64_t numel_of(const std::vector<Range>& ranges) {
  return std::transform_reduce(
      ranges.begin(), ranges.end(), std::int64_t{0}, std::plus<>(), std::mem_fn(&Range::size));
}

void pack(
    const at::Tensor& buffer, const std::vector<Range>& ranges, float scale,
    const at::Tensor& packed) {
  std::int64_t at = 0;
  for (const Range& range : ranges) {
    ops::scale_cast(
        buffer.narrow(0, range.begin, range.size), scale, packed.narrow(0, at, range.size));
    at += range.size;
  }
}

void unpack(const at::Tensor& packed, const std::vector<Range>& ranges, const at::Tensor& buffer) {
  std::int64_t at = 0;
  for (const Range& range : ranges) {
    ops::scale_cast(
        packed.narrow(0, at, range.size), 1.0f, buffer.narrow(0, range.begin, range.size));
    at += range.size;
  }
}

std::vector<Bucket> make_buckets(std::vector<Slot> slots, double mebibytes) {
  std::erase_if(slots, [](const Slot& slot) { return slot.numel() == 0; });
  // The last layer's gradients are ready first.
  std::ranges::stable_sort(slots, std::ranges::greater{}, &Slot::position);
  constexpr double kFirst = 1;
  std::vector<Bucket> buckets;
  double filled = 0;
  for (Slot& slot : slots) {
    const double limit = buckets.size() <= 1 ? std::min(kFirst, mebibytes) : mebibytes;
    if (buckets.empty() || (mebibytes > 0 && filled >= limit * (1 << 20))) {
      buckets.emplace_back();
      filled = 0;
    }
    filled += 4.0 * static_cast<double>(slot.numel());
    buckets.back().slots.push_back(std::move(slot));
  }
  for (Bucket& bucket : buckets) {
    std::ranges::stable_sort(bucket.slots, {}, &Slot::position);
  }
  return buckets;
}

}  // namespace abtrain::compress
