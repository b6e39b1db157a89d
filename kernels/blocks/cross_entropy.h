// The cross-entropy of rows of logits and its gradient (ops/cross_entropy.h has the formulas). The
// body is a template over a team that processes a row. The launcher takes device pointers, is
// asynchronous on `stream` (a cudaStream_t) and returns a cudaError_t as an int.
//
// A row is read twice and its gradient written once; a thread block per row
// finds the row in the GPU's cache the second time.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/element.h"
#include "kernels/exponential.h"

namespace abtrain::kernels {

struct CrossEntropy {
  Element element;  // F32 or BF16: of logits and gradient, which are 16-byte aligned
  std::int64_t rows;
  std::int64_t length;  // of a row
  const void* logits;
  const std::int64_t* labels;  // one per row
  const std::int64_t* count;   // one value: the rows whose label counts; null: all
  std::int64_t ignored;        // the label of rows that do not count
  float smoothing;
  float weight;
  float* losses;  // one per row: its part of the mean
  void* gradient;
};
ABT_LAUNCHER int cross_entropy(const CrossEntropy& job, void* stream);
void work_on_host(const CrossEntropy& job);

// The order of a sum over a row, the same on every device. The row begins in the lane given by the
// index of its first logit modulo 8. Element i of the lanes' sequence is added to lane i modulo
// kEntropyLanes. The lanes of a unit (eight neighbors) are added, upper half to lower half; then
// the units are added in the same way.
constexpr int kEntropyUnit = 8;
constexpr int kEntropyUnits = 512;
constexpr int kEntropyLanes = kEntropyUnit * kEntropyUnits;

// A lane stores the sum of e^x over its logits so far as sum * e^most.
ABT_INLINE void add_exponential(float& most, float& sum, float x) {
  const float above = x - most;
  const float e = exponential(-::fabsf(above));
  // Either the old sum shrinks or the new term is below 1.
  sum = ::fmaf(above > 0 ? sum : 1.0f, e, above > 0 ? 1.0f : sum);
  most = x > most ? x : most;
}

// A Team provides
//   Lanes             numbers of a member's lanes, lanes[k]
//   for_lanes(use)    use(k) for each of them that has an element of the row
//   for_tiles(from, use)  use(tile, x) for the member's parts of the row, with
//                     the elements x[k], in fp32, of the buffer `from`
//     tile.each(use)         use(k) for each of the part's lanes k
//     tile.store(to, value)  stores value(k) in the buffer `to`
//   largest(lanes), sum(value)  over the lanes of all members
//   owns(i)           whether this member has element i of the row
//   at(from, i), store(to, i, value)  that element
template <bool kSmooth, class Team>
ABT_INLINE void cross_entropy_row(Team& team, const CrossEntropy& job, std::int64_t row) {
  using T = typename Team::Element;
  const T* const logits = static_cast<const T*>(job.logits);
  T* const gradient = static_cast<T*>(job.gradient);
  const std::int64_t label = job.labels[row];
  if (label < 0 || label >= job.length) {
    // A label that is neither a class nor `ignored` must not look like a valid loss.
    const float all = label == job.ignored ? 0.0f : float_of(kNan);
    team.for_tiles(logits, [&](const auto& tile, const auto&) ABT_INLINED {
      tile.store(gradient, [&](int) ABT_INLINED { return all; });
    });
    if (team.owns(0)) {
      job.losses[row] = all;
    }
    return;
  }
  typename Team::Lanes most;
  typename Team::Lanes sum;
  typename Team::Lanes total;  // of the logits themselves
  team.for_lanes([&](int k) ABT_INLINED {
    most[k] = -kLargestFloat;  // less than infinite: their difference is a number
    sum[k] = 0.0f;
    total[k] = 0.0f;
  });
  team.for_tiles(logits, [&](const auto& tile, const auto& x) ABT_INLINED {
    tile.each([&](int k) ABT_INLINED {
      add_exponential(most[k], sum[k], x[k]);
      if constexpr (kSmooth) {
        total[k] += x[k];
      }
    });
  });
  const float top = team.largest(most);
  const float all =
      team.sum([&](int k) ABT_INLINED { return sum[k] * exponential(most[k] - top); });
  const std::int64_t counted = job.count == nullptr ? job.rows : *job.count;
  const float slope = job.weight / static_cast<float>(counted);  // of the row's own loss
  const float factor = slope / all;
  const float hit = slope * (1.0f - job.smoothing);
  const float even = -slope * job.smoothing / static_cast<float>(job.length);
  const auto slope_of = [&](float x) ABT_INLINED {
    return ::fmaf(exponential(x - top), factor, kSmooth ? even : 0.0f);
  };
  team.for_tiles(logits, [&](const auto& tile, const auto& x) ABT_INLINED {
    tile.store(gradient, [&](int k) ABT_INLINED { return slope_of(x[k]); });
  });
  const float logits_total = kSmooth ? team.sum([&](int k) ABT_INLINED { return total[k]; }) : 0.0f;
  if (team.owns(label)) {
    const float x = team.at(logits, label);
    team.store(gradient, label, slope_of(x) - hit);
    const double smoothing = kSmooth ? double{job.smoothing} : 0.0;
    double loss = ::fma(double{top} - double{x}, 1.0 - smoothing, ::log(double{all}));
    if constexpr (kSmooth) {
      const double mean = double{logits_total} / static_cast<double>(job.length);
      loss = ::fma(double{top} - mean, smoothing, loss);
    }
    job.losses[row] = static_cast<float>(loss / static_cast<double>(counted));
  }
}

}  // namespace abtrain::kernels
