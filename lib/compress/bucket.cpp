#include "compress/bucket.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "ops/scale_cast.h"

namespace abtrain::compress {

std::int64_t Bucket::numel() const {
  return numel_of(ranges);
}

std::vector<Range> ranges_of(std::vector<Slot> slots) {
  std::ranges::stable_sort(slots, {}, &Slot::offset);
  std::vector<Range> joined;
  std::int64_t place = 0;
  for (const Slot& slot : slots) {
    if (joined.empty() || joined.back().begin + joined.back().size != slot.offset) {
      joined.push_back({slot.offset, 0, place});
    }
    joined.back().size += slot.numel();
    place += slot.numel();
  }
  return joined;
}

std::int64_t numel_of(const std::vector<Range>& ranges) {
  return ranges.empty() ? 0 : ranges.back().place + ranges.back().size;
}

std::int64_t line_up(std::vector<Slot>& slots) {
  std::int64_t end = 0;
  for (Slot& slot : slots) {
    slot.offset = end;
    end += slot.numel();
  }
  return end;
}

PackedSlots::PackedSlots(std::vector<Slot> of_buffer)
    : ranges(ranges_of(of_buffer)), slots(std::move(of_buffer)) {
  std::ranges::stable_sort(slots, {}, &Slot::offset);
  numel = line_up(slots);
}

void pack(
    const at::Tensor& buffer, const std::vector<Range>& ranges, float scale,
    const at::Tensor& packed) {
  for (const Range& range : ranges) {
    ops::scale_cast(range.of(buffer), scale, range.in(packed));
  }
}

void unpack(const at::Tensor& packed, const std::vector<Range>& ranges, const at::Tensor& buffer) {
  for (const Range& range : ranges) {
    ops::scale_cast(range.in(packed), 1.0f, range.of(buffer));
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
    bucket.ranges = ranges_of(bucket.slots);
  }
  return buckets;
}

}  // namespace abtrain::compress
