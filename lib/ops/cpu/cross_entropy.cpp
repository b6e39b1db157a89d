#include "kernels/blocks/cross_entropy.h"

#include <c10/util/BFloat16.h>

#include <algorithm>
#include <bit>

#include "ops/cpu/code_blocks.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

// The Team that processes a row (kernels/blocks/cross_entropy.h) on the host: one thread, which
// holds all lanes.
template <class T>
class EntropyLanes {
 public:
  using Element = T;
  using Lanes = float[kEntropyLanes];

  struct Values {
    const T* from;
    ABT_INLINE float operator[](int k) const {
      return static_cast<float>(from[k]);
    }
  };
  // The lanes first <= k < last, where lane 0 holds element `at` of the buffer.
  struct Tile {
    std::int64_t at;
    int first, last;

    template <class Use>
    ABT_INLINE void each(const Use& use) const {
      for (int k = first; k < last; ++k) {
        use(k);
      }
    }
    template <class Value>
    ABT_INLINE void store(T* to, const Value& value) const {
      T* const here = to + at;
      for (int k = first; k < last; ++k) {
        here[k] = static_cast<T>(value(k));
      }
    }
  };

  ABT_INLINE EntropyLanes(std::int64_t begin, std::int64_t length)
      : begin_(begin), end_(begin + length), aligned_(begin - begin % kEntropyUnit) {
    // The lanes from used_ on are empty and change no sum.
    const auto lanes = static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(end_ - aligned_, kEntropyUnit, kEntropyLanes));
    used_ = static_cast<int>(std::bit_ceil(lanes));
  }

  template <class Use>
  ABT_INLINE void for_lanes(const Use& use) const {
    for (int k = 0; k < used_; ++k) {
      use(k);
    }
  }
  template <class Use>
  ABT_INLINE void for_tiles(const T* from, const Use& use) const {
    for (std::int64_t at = aligned_; at < end_; at += kEntropyLanes) {
      const Tile tile{
          at, static_cast<int>(std::max<std::int64_t>(begin_ - at, 0)),
          static_cast<int>(std::min<std::int64_t>(end_ - at, kEntropyLanes))};
      use(tile, Values{from + at});
    }
  }
  ABT_INLINE float largest(const Lanes& lanes) const {
    float units[kEntropyUnit];
    std::copy(lanes, lanes + kEntropyUnit, units);
    for (int begin = kEntropyUnit; begin < used_; begin += kEntropyUnit) {
      for (int k = 0; k < kEntropyUnit; ++k) {
        units[k] = lanes[begin + k] > units[k] ? lanes[begin + k] : units[k];
      }
    }
    return *std::max_element(units, units + kEntropyUnit);
  }
  template <class Value>
  ABT_INLINE float sum(const Value& value) const {
    float lanes[kEntropyLanes];
    for_lanes([&](int k) ABT_INLINED { lanes[k] = value(k); });
    for (int unit = 0; unit < used_ / kEntropyUnit; ++unit) {
      lanes[unit] = add_by_halves(lanes + unit * kEntropyUnit, kEntropyUnit);
    }
    return add_by_halves(lanes, used_ / kEntropyUnit);
  }
  ABT_INLINE bool owns(std::int64_t) const {
    return true;
  }
  ABT_INLINE float at(const T* from, std::int64_t i) const {
    return static_cast<float>(from[begin_ + i]);
  }
  ABT_INLINE void store(T* to, std::int64_t i, float value) const {
    to[begin_ + i] = static_cast<T>(value);
  }

 private:
  std::int64_t begin_, end_;
  std::int64_t aligned_;
  int used_;
};

template <class T, bool kSmooth>
void entropy_on_host(const CrossEntropy& job) {
  constexpr std::int64_t kGrain = 16384;  // elements worth a thread
  for_blocks(
      job.rows,
      [&](std::int64_t row) ABT_INLINED {
        EntropyLanes<T> team(row * job.length, job.length);
        cross_entropy_row<kSmooth>(team, job, row);
      },
      std::max<std::int64_t>(kGrain / job.length, 1));
}

template <class T>
void entropy_on_host(const CrossEntropy& job) {
  job.smoothing > 0 ? entropy_on_host<T, true>(job) : entropy_on_host<T, false>(job);
}

}  // namespace

void work_on_host(const CrossEntropy& job) {
  job.element == Element::BF16 ? entropy_on_host<c10::BFloat16>(job) : entropy_on_host<float>(job);
}

}  // namespace abtrain::kernels
