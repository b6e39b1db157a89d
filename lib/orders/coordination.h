// The order server of CD-GraB (Cooper et al., arXiv 2302.00845, algorithm 2),
// shared out: the workers of a group decide on the signs of all their
// differences of gradients, worker after worker, pair after pair, each holding
// only its share of the coordinates of the running sum S.
//
// A worker's differences D travel to whom their coordinates belong (all-to-all,
// in the form of a DifferenceWire). There the products of all rows with one
// another and with S are taken; summed up over the workers (all-reduce), they
// give every worker all signs (ops/pair_signs.h), from the same bits. So a pair
// costs a worker (n - 1) / n of one message, where a gather to one server would
// bring that one n - 1 of them, and the sums are shared out as well. Both steps
// travel while training goes on: send() and advance() wait for nothing that has
// just been started.
//
// Alone, without a group, nothing travels, and differences are fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "orders/difference_wire.h"
#include "orders/sign_queue.h"
#include "state/archive.h"

namespace abtrain::orders {

// Rows whose products are taken at once; more are taken run by run.
constexpr std::int64_t kProductRows = 128;

class Coordination {
 public:
  // Differences of `numel` numbers, `pairs` at a time. `group`: null for one
  // alone; it outlives this.
  Coordination(
      const data::OrderOptions& options,
      std::int64_t numel,
      std::int64_t pairs,
      std::uint64_t seed,
      c10::Device device,
      comm::Communicator* group);

  // The epoch's first difference comes next: S = 0. Nothing is under way.
  void reset();
  // Numbers begin .. begin + count - 1 of `gradient`, flat and whole, of the
  // next pair's first unit, then of the second one: D = first - second. It may
  // be overwritten afterwards. The second not between a send() and the
  // advance() after it.
  void keep(const at::Tensor& gradient, std::int64_t begin, std::int64_t count);
  void
  subtract(const at::Tensor& gradient, std::int64_t begin, std::int64_t count);
  // Alone: of D = gradient - mean.
  void centre(
      const at::Tensor& gradient,
      const at::Tensor& mean,
      std::int64_t begin,
      std::int64_t count);
  // Collective. The pair whose numbers are all there. What is under way is
  // finished.
  void send();
  // The rows of `differences`, pairs x numel, one after another.
  void send_rows(const at::Tensor& differences);
  // Collective. Goes on with what is under way by one step.
  void advance();
  // Collective. Until nothing is under way.
  void finish();
  // All workers' signs: pair 0 of each, pair 1 of each, ...
  SignQueue& signs() {
    return decided_;
  }
  // This worker's share of S.
  at::Tensor& sum() {
    return sum_;
  }
  // The first unit's gradient that waits for the second one. Loading: there is
  // one.
  void archive(state::Archive& archive, const std::string& prefix);

 private:
  enum class Stage { Idle, Differences, Products };

  // A run of numbers cut at the borders of items.
  struct Cut {
    std::int64_t begin, inner, rest, end;
  };
  Cut cut(std::int64_t begin, std::int64_t count) const;
  // The items of inner .. rest in a message.
  at::Tensor items(const at::Tensor& message, const Cut& cut) const;
  void exchange();
  void receive();
  void begin_products();
  void start_run();
  void end_products();

  comm::Communicator* group_;
  int workers_;
  int worker_;
  std::int64_t pairs_;
  std::unique_ptr<DifferenceWire> wire_;
  std::vector<std::int64_t> counts_;  // elements for each worker
  std::int64_t numel_;
  at::Tensor first_;    // of a pair's first unit; then the difference
  at::Tensor kept_;     // the same as a message, where the wire has that
  bool whole_ = false;  // the difference is not encoded yet
  std::vector<std::int64_t> edges_;  // items of which this is true
  at::Tensor messages_;              // a worker's own, pairs x elements
  at::Tensor outbox_;                // the same, worker after worker
  at::Tensor inbox_;
  std::unique_ptr<DifferenceRows> rows_;  // this worker's share of each
  at::Tensor sum_;
  at::Tensor triangle_;   // of the run of rows in work
  at::Tensor signs_;      // of all rows
  std::int64_t row_ = 0;  // the first one of that run
  Stage stage_ = Stage::Idle;
  comm::Pending pending_;
  SignQueue decided_;
};

}  // namespace abtrain::orders
