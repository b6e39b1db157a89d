// The cross-entropy of rows of logits and its gradient (formulas: ops/cross_entropy.h). The body is
// a template over a team that processes a row. The launcher takes device pointers and a
// cudaStream_t, and returns a cudaError_t.
//
// A row is read twice and its gradient written once. One thread block processes a row, so that it
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
  const std::int64_t* count;   // one value: number of rows with a label that counts; null: all
  std::int64_t ignored;        // the label that marks rows that do not count
  float smoothing;
  float weight;
  float* losses;  // one per row: its term of the mean
  void* gradient;
};
ABT_LAUNCHER int cross_entropy(const CrossEntropy& job, void* stream);
void work_on_host(const CrossEntropy& job);

// The order in which a row is summed, the same on every device. If the index of the row's first
// logit in the buffer is s modulo 8, element i of the row is added to lane (s + i) modulo
// kEntropyLanes. Then, in each unit of eight adjacent lanes, the upper half is added to the lower
// half until one lane is left. Finally the sums of the units are added by halves likewise.
constexpr int kEntropyUnit = 8;
constexpr int kEntropyUnits = 512;
constexpr int kEntropyLanes = kEntropyUnit * kEntropyUnits;

// Adds e^x to the sum of a lane. The lane stores this sum as sum * e^most, where `most` is its
// largest logit so far.
ABT_INLINE void add_exponential(float& most, float& sum, float x) {
  const float above = x - most;
  const float e = exponential(-::fabsf(above));
  // If x is the new largest logit, the old sum is scaled by e and the new term is 1; otherwise the
  // new term is e.
  sum = ::fmaf(above > 0 ? sum : 1.0f, e, above > 0 ? 1.0f : sum);
  most = x > most ? x : most;
}

// A Team consists of members (threads) that share the lanes. It provides
//   Lanes             an array with one number per lane of a member
//   for_lanes(use)    calls use(k) for the member's lanes k, at least for those that have an
//                     element of the row
//   for_tiles(from, use)  calls use(tile, x) for each part of the row that this member processes;
//                     x[k] are the part's elements of the buffer `from`, in fp32
//     tile.each(use)         calls use(k) for each lane k of the part
//     tile.store(to, value)  stores value(k) in the buffer `to` for each lane k of the part
//   largest(lanes), sum(value)  the largest of lanes[k], and the sum of value(k), over all members
//   owns(i)           whether this member processes element i of the row
//   at(from, i), store(to, i, value)  reads or writes element i of the row in a buffer
template <bool kSmooth, class Team>
ABT_INLINE void cross_entropy_row(Team& team, const CrossEntropy& job, std::int64_t row) {
  using T = typename Team::Element;
  const T* const logits = static_cast<const T*>(job.logits);
  T* const gradient = static_cast<T*>(job.gradient);
  const std::int64_t label = job.labels[row];
  if (label < 0 || label >= job.length) {
    // A label that is neither a class nor `ignored` gives NaN, so that it does not go unnoticed.
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
  typename Team::Lanes total;  // sums of logits
  team.for_lanes([&](int k) ABT_INLINED {
    most[k] = -kLargestFloat;  // finite: infinity - infinity is NaN
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
  const float slope = job.weight / static_cast<float>(counted);  // the row's weight in the gradient
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
