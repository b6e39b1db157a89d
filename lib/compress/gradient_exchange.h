// Averages a flat buffer of gradients in buckets that overlap: while one bucket's collective is in
// flight, the next buckets are still being computed and encoded.
//
// A bucket starts when the last of its slots is ready and all buckets before it have started; each
// start advances the open buckets by one round. So the collectives have the same order on all
// members, whatever the timing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "compress/reducer.h"
#include "device/span.h"

namespace abtrain::compress {

// This worker's seconds, summed over all steps so far.
struct Costs {
  double encode = 0;      // work before the last collective of a bucket
  double collective = 0;  // waiting for collectives
  double decode = 0;      // work after the last collective of a bucket

  friend Costs operator+(const Costs& a, const Costs& b) {
    return {a.encode + b.encode, a.collective + b.collective, a.decode + b.decode};
  }
  friend Costs operator-(const Costs& a, const Costs& b) {
    return {a.encode - b.encode, a.collective - b.collective, a.decode - b.decode};
  }
};

// Compares a step's estimate of the mean gradient with the true mean.
struct Evaluation {
  double vnmse = 0;          // |estimate - mean|^2 / |mean|^2; 0 for mean 0
  double residual_norm = 0;  // root mean square over members of the residual's 2-norm
  double payload_bits = 0;   // per coordinate (Volume::payload_bits)
  double sent_bits = 0;      // per coordinate, sent by this member
  Costs costs;               // of this step
};

// Receives a member's own gradients (elements begin .. begin + count - 1 of the flat buffer) just
// before they are averaged in place. Every element is passed once per step.
using GradientWatch =
    std::function<void(const at::Tensor& gradients, std::int64_t begin, std::int64_t count)>;

class GradientExchange {
 public:
  // `interval`: number of steps from one exchange to the next.
  GradientExchange(const ReducerOptions& options, std::uint64_t seed, std::int64_t interval = 1);
  void set_interval(std::int64_t interval) {
    interval_ = interval;
  }

  // From now on averages `gradients` (flat, fp32), laid out in these slots, over `group`, which
  // must outlive this object. Drops all residuals.
  void bind(
      std::vector<Slot> slots, at::Tensor gradients, comm::Communicator& group,
      comm::Purpose purpose = comm::Purpose::Gradient);
  // An empty function removes the watch.
  void watch(GradientWatch watch) {
    watch_ = std::move(watch);
  }
  // Drops buffers and residuals until the next bind().
  void release();

  // Begins step t: from now on ready() starts buckets. Without begin(), and in evaluated steps (one
  // every options.evaluate_every steps), all buckets start in finish().
  void begin(std::int64_t t);
  // Reports that the gradient of slot `index` (in bind()'s order) is final. May be called from any
  // thread, one call at a time.
  void ready(std::size_t index);
  // Starts the remaining buckets and returns once all gradients are averaged. The result has a
  // value in evaluated steps. A step that was begun must be finished, or the exchange destroyed.
  std::optional<Evaluation> finish(std::int64_t t);
  // Starts all buckets of step t, each up to its first collective, without waiting. finish(t)
  // completes them.
  void start(std::int64_t t);

  const Costs& costs();
  void archive(state::Archive& archive, const std::string& prefix);

 private:
  struct Open {
    Rounds rounds;
    std::optional<device::Span> last;  // the last round's work, not yet in costs_
  };

  void open_step(std::int64_t t);
  bool all_started() const {
    return open_.size() == buckets_.size();
  }
  void open_bucket();
  void start_bucket();
  // Advances an open bucket by a round; resets it when it is done.
  void advance(std::optional<Open>& open);
  void count(double Costs::*stage, device::Span span);
  void settle(bool wait);
  bool is_evaluated(std::int64_t t) const;
  bool is_dense(std::int64_t t) const;
  Evaluation evaluate(const at::Tensor& exact, const Costs& before, bool dense);

  ReducerOptions options_;
  std::uint64_t seed_;
  std::unique_ptr<Reducer> reducer_;
  std::int64_t interval_;
  at::Tensor gradients_;
  comm::Communicator* group_ = nullptr;
  comm::Purpose purpose_ = comm::Purpose::Gradient;
  GradientWatch watch_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;     // one per slot
  std::vector<std::size_t> missing_;       // slots per bucket not yet ready
  std::int64_t step_ = -1;                 // the step begun but not finished; -1: none
  std::vector<std::optional<Open>> open_;  // one per started bucket
  Costs costs_;
  std::deque<std::pair<double Costs::*, device::Span>> spans_;  // not yet in costs_
};

// Predicts the bytes that a member sends, for `abtrain plan`.
class ExchangePlan {
 public:
  ExchangePlan(const ReducerOptions& options, std::vector<Slot> slots, Member member);
  // Bytes of the exchanges in the steps first, first + interval, ... before `end`.
  std::int64_t bytes_between(std::int64_t first, std::int64_t end, std::int64_t interval = 1) const;
  // Bytes of one exchange after the first `dense_steps` steps.
  std::int64_t usual_bytes() const {
    return usual_;
  }

 private:
  std::int64_t dense_steps_;
  std::int64_t dense_;  // of an uncompressed exchange
  std::int64_t usual_;  // of any other exchange
};

}  // namespace abtrain::compress
