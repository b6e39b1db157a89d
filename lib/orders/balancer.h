// A worker's part in an order that gradients decide on: it watches the
// gradients of the units in the order of the epoch, and gives out the next
// epoch's order.
//
// - `grab` (Lu et al., arXiv 2205.10733, algorithm 4): of each unit's gradient
//   less the mean of the epoch before, <S, g - mean> <= 0 puts the unit early,
//   S += g - mean; else late, S -= g - mean. Each worker alone.
// - `id-grab`: PairBalance (Cooper et al., arXiv 2302.00845, algorithm 2), each
//   worker alone: no mean is kept.
// - `cd-grab`: PairBalance with one sum S for all workers whose gradients a
//   step averages (orders/coordination.h).
//
// S is 0 when an epoch begins, and when other parameters are trained: then a
// unit that waits for its neighbour is let go, and the pair keeps its order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "data/balanced_order.h"
#include "data/data_options.h"
#include "data/published_order.h"
#include "orders/coordination.h"
#include "orders/unit_gradients.h"
#include "state/archive.h"

namespace abtrain::orders {

// How often as many numbers as are trained a worker keeps for that, in a group
// of `workers`, by `batch` examples (0: by units).
double order_copies(
    const data::OrderOptions& options,
    std::int64_t batch,
    int workers);

class Balancer {
 public:
  // `batch`: of so many examples the gradients come at a time; 0: those of single
  // units, by see() and step(). `order` outlives this.
  Balancer(
      const data::OrderOptions& options,
      std::uint64_t seed,
      std::int64_t batch,
      data::PublishedOrder& order);

  bool takes_examples() const {
    return batch_ > 0;
  }

  // The units' own order for this epoch, from unit `place` on: units before it
  // are not seen, and keep their order.
  void start(std::int64_t epoch, std::int64_t place);
  bool is_at(std::int64_t epoch, std::int64_t place) const {
    return epoch_ == epoch && place_ == place;
  }
  // From now on gradients of `numel` parameters, which workers of `group`
  // average (null: none), both until the next bind(). Collective over the group
  // before.
  void bind(std::int64_t numel, c10::Device device, comm::Communicator* group);

  // A part of the next unit's gradient (`gradients` is all of it, flat) is
  // there and will be overwritten. In any thread, one at a time.
  void see(const at::Tensor& gradients, std::int64_t begin, std::int64_t count);
  // The unit's step: what see() has not got is taken now. Collective over the
  // group.
  void step(const at::Tensor& gradients);
  // The next `batch` units. Collective over the group.
  void step(const UnitGradients& units);

  // Ends what is under way. Collective over the group.
  void settle();
  // After bind(), and settle() where it saves.
  void archive(state::Archive& archive);

  // For tests: all workers' signs are handed to it before they are used.
  std::function<void(const std::vector<int>&)> watch_signs;

 private:
  bool decides_pairs() const {
    return options_.name != "grab";
  }
  bool is_alone() const {
    return group_ == nullptr || group_->size() == 1;
  }
  void end_unit();
  void advance(std::int64_t units);
  void take_signs(bool wait);
  void balance_alone(const UnitGradients& units);
  at::Tensor& sum();
  void end_epoch();

  const data::OrderOptions options_;
  std::uint64_t seed_;
  std::int64_t batch_;
  data::PublishedOrder& published_;
  data::BalancedOrder order_;
  std::int64_t epoch_ = 0;
  std::int64_t place_ = 0;  // of the next unit
  bool broken_ = false;     // the pair at `place_` lacks its first gradient

  comm::Communicator* group_ = nullptr;
  std::int64_t numel_ = 0;
  std::int64_t seen_ = 0;  // numbers of the next unit's gradient
  std::optional<Coordination> coordination_;
  // Of examples, alone:
  at::Tensor sum_;
  SignQueue signs_;
  ProductTriangle packer_;
  // grab:
  at::Tensor mean_;           // of the last epoch; zeros at first
  at::Tensor total_;          // of this epoch so far
  std::int64_t counted_ = 0;  // gradients in it
};

}  // namespace abtrain::orders
