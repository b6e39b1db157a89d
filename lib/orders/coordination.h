// The order server of CD-GraB (Cooper et al., arXiv 2302.00845, algorithm 2), distributed: the
// workers of a group together decide the signs of all their gradient differences D, pair by pair
// and, within a pair, worker by worker. Each worker holds only its share of the coordinates of the
// running sum S.
//
// Each worker sends the coordinates of its differences to the workers that own them (all-to-all,
// encoded by a DifferenceWire). The owners compute the inner products of all differences ("rows")
// with one another and with S. Summed over the workers (all-reduce), these products are
// bit-identical on every worker and determine all signs (ops/pair_signs.h). A pair thus costs each
// of n workers (n - 1) / n of one message, whereas a single server would receive n - 1 messages.
// Both collectives overlap training: send() and advance() do not wait for a collective that they
// have just started, unless there are more than kProductRows rows.
//
// A worker without a group sends nothing, and its differences are fp32. Call all functions under an
// at::NoGradGuard.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "orders/difference_rows.h"
#include "orders/difference_wire.h"
#include "orders/sign_queue.h"
#include "state/archive.h"

namespace abtrain::orders {

// Number of rows whose products are computed at once; more rows are processed in runs of this
// length.
constexpr std::int64_t kProductRows = 128;

class Coordination {
 public:
  // Each worker has `pairs` differences of `numel` numbers at a time. `group` is null for a worker
  // alone; otherwise it must outlive this object. `signs` gets all workers' signs: pair 0 of each
  // worker, then pair 1 of each, ...
  Coordination(
      const OrderOptions& options, std::int64_t numel, std::int64_t pairs, c10::Device device,
      comm::Communicator* group, SignQueue& signs);

  // Take elements begin .. begin + count - 1 of the whole flat `gradient`: keep() for the next
  // pair's first unit, then subtract() for the second; D = first - second. The gradient may be
  // overwritten afterwards. Do not call subtract() between a send() and the advance() after it.
  void keep(const at::Tensor& gradient, std::int64_t begin, std::int64_t count);
  void subtract(const at::Tensor& gradient, std::int64_t begin, std::int64_t count);
  // For a worker alone: D = gradient - mean.
  void center(
      const at::Tensor& gradient, const at::Tensor& mean, std::int64_t begin, std::int64_t count);
  // Collective. Finishes the exchange in flight, if any, then starts to send the pair's difference,
  // whose elements must all have been taken.
  void send();
  // Like send(), but sends the rows of `differences` (pairs x numel).
  void send_rows(const at::Tensor& differences);
  // Collective. Advances the exchange in flight, if any, by one stage.
  void advance();
  // Collective. Advances until nothing is in flight.
  void finish();
  // This worker's share of S; zero it when an epoch begins, with nothing in flight.
  at::Tensor& sum() {
    return sum_;
  }
  // Saves or loads the gradient of a pair's first unit, which waits for the second. Load it only
  // from a checkpoint that has one.
  void archive(state::Archive& archive, const std::string& prefix);

 private:
  enum class Stage { Idle, Differences, Products };

  // The numbers begin .. end - 1 of a range. Of these, inner .. rest - 1 fill whole items of a
  // message (orders/difference_wire.h).
  struct Cut {
    std::int64_t begin, inner, rest, end;
  };
  Cut cut(std::int64_t begin, std::int64_t count) const;
  // The items of a message that hold inner .. rest - 1.
  at::Tensor items(const at::Tensor& message, const Cut& cut) const;
  void exchange();
  void start_run();
  void end_products();

  comm::Communicator* group_;
  int workers_;
  int worker_;
  std::int64_t pairs_;
  DifferenceWire wire_;
  std::vector<std::int64_t> counts_;  // elements sent to each worker
  std::int64_t numel_;
  at::Tensor first_;                 // gradient of a pair's first unit, later the difference
  at::Tensor kept_;                  // whole items of first_, encoded, if format().keeps_messages
  std::vector<std::int64_t> edges_;  // items that send() must still encode
  at::Tensor messages_;              // this worker's messages, pairs x elements
  at::Tensor outbox_;                // messages_ grouped by receiving worker
  at::Tensor inbox_;
  std::optional<DifferenceRows> rows_;  // this worker's share of each row
  at::Tensor sum_;
  at::Tensor triangle_;   // products of the current run of rows
  at::Tensor signs_;      // of all rows
  std::int64_t row_ = 0;  // first row of the current run
  Stage stage_ = Stage::Idle;
  comm::Pending pending_;
  SignQueue& decided_;
};

}  // namespace abtrain::orders
