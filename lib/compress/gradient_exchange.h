// The averaging of a flat buffer of gradients in buckets that overlap: while
// one bucket's collective travels, the next ones are still being computed, and
// encoded.
//
// A bucket starts when the last of its slots is ready and all buckets before it
// have started; each start moves the open ones on by a round. So the
// collectives have one order, whatever the timing: the same on all members.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "compress/reducer.h"
#include "device/span.h"

namespace abtrain::compress {

// Seconds of this worker in all steps so far.
struct Costs {
  double encode = 0;      // up to the last collective of a bucket
  double collective = 0;  // waiting for collectives
  double decode = 0;      // from there on

  Costs& operator+=(const Costs& other) {
    encode += other.encode;
    collective += other.collective;
    decode += other.decode;
    return *this;
  }
  friend Costs operator+(Costs a, const Costs& b) {
    return a += b;
  }
  friend Costs operator-(const Costs& a, const Costs& b) {
    return {
        a.encode - b.encode, a.collective - b.collective, a.decode - b.decode};
  }
};

// The estimate of one step against the true mean.
struct Evaluation {
  double vnmse = 0;          // |estimate - mean|^2 / |mean|^2; 0 for mean 0
  double residual_norm = 0;  // root of the members' mean square
  double payload_bits = 0;   // a coordinate
  double sent_bits = 0;      // a coordinate, by this member
  Costs costs;               // of this step
};

// Sees a run of a member's own gradients, numbers begin .. begin + count - 1 of
// the flat buffer, just before they are averaged in place. Each step shows
// every number once.
using GradientWatch = std::function<
    void(const at::Tensor& gradients, std::int64_t begin, std::int64_t count)>;

class GradientExchange {
 public:
  // interval: steps from one exchange to the next.
  GradientExchange(
      const ReducerOptions& options,
      std::uint64_t seed,
      std::int64_t interval = 1);

  // From now on `gradients` (flat, fp32) in these slots, averaged over `group`,
  // which outlives it; forgets all residuals.
  void bind(
      std::vector<Slot> slots,
      at::Tensor gradients,
      comm::Communicator& group,
      comm::Purpose purpose = comm::Purpose::Gradient);
  // Empty: nobody watches.
  void watch(GradientWatch watch) {
    watch_ = std::move(watch);
  }
  // Lets go of buffers and residuals until the next bind().
  void release();

  // Step t begins: buckets may start as their slots become ready, in any
  // thread, one at a time. Without this they start in finish(). Steps that are
  // evaluated do not overlap.
  void begin(std::int64_t t);
  // The gradient of slot `index` (of bind()'s order) is final.
  void ready(std::size_t index);
  // Starts what has not started; returns when all gradients are averaged.
  // Something in steps that are evaluated. A step that was begun must be
  // finished, or the exchange dropped.
  std::optional<Evaluation> finish(std::int64_t t);
  // Starts all buckets of step t, to be finished by finish(t) later: each goes
  // as far as its first collective, and none is waited for.
  void start(std::int64_t t);

  const Costs& costs();
  std::string name() const {
    return reducer_->name();
  }
  void archive(state::Archive& archive, const std::string& prefix);

 private:
  enum class Part { Encode, Collective, Decode };
  struct Open {
    Rounds rounds;
    std::optional<device::Span> last;  // the work since the last collective
  };

  void open_step(std::int64_t t);
  void open_bucket();
  void start_bucket();
  void step_on(std::optional<Open>& open);
  // Moves an open bucket on by a round; false when it is through.
  bool advance(Open& open);
  void count(Part part, device::Span span);
  void settle(bool wait);
  bool is_evaluated(std::int64_t t) const;
  std::int64_t turn_of(std::int64_t t) const;
  Evaluation
  evaluate(const at::Tensor& exact, const Costs& before, std::int64_t t);

  ReducerOptions options_;
  std::unique_ptr<Reducer> reducer_;
  std::int64_t interval_;
  std::int64_t turns_ = 0;  // compressed exchanges since bind()
  at::Tensor gradients_;
  comm::Communicator* group_ = nullptr;
  comm::Purpose purpose_ = comm::Purpose::Gradient;
  GradientWatch watch_;
  std::size_t buckets_ = 0;
  std::vector<std::vector<Range>> ranges_;  // of each bucket
  std::vector<std::size_t> bucket_of_;      // of each slot
  std::vector<std::size_t> sizes_;          // slots of each bucket
  std::vector<std::size_t> missing_;        // of them not ready yet
  std::int64_t step_ = -1;                  // begun, not finished
  std::size_t started_ = 0;
  std::vector<std::optional<Open>> open_;
  Costs costs_;
  std::deque<std::pair<Part, device::Span>> spans_;
};

// Bytes that member `rank` of `members` sends: for `plan`. Not for several
// threads at once: it keeps what it worked out.
class ExchangePlan {
 public:
  ExchangePlan(const ReducerOptions& options, std::vector<Slot> slots);
  // In one step of an exchange each step, bound before step 0.
  std::int64_t bytes(int members, int rank, std::int64_t step);
  // In all exchanges of a binding: in the steps first, first + interval, ...
  // before `end`.
  std::int64_t bytes_between(
      int members,
      int rank,
      std::int64_t first,
      std::int64_t end,
      std::int64_t interval = 1);
  // The mean of the turns of a period.
  std::int64_t usual_bytes(int members, int rank);

 private:
  std::int64_t turn_bytes(int members, int rank, std::int64_t turn);

  std::int64_t dense_steps_;
  std::unique_ptr<Reducer> reducer_;
  std::size_t buckets_;
  // What was worked out, by (members, rank, place in the period or kDense).
  std::map<std::tuple<int, int, std::int64_t>, std::int64_t> known_;
};

}  // namespace abtrain::compress
