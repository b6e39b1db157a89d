// Derives the order of a worker's examples from gradients: watches the gradients of units (single
// examples, or all of a step's examples) in this epoch's order, and produces the next one.
//
// - `grab` (Lu et al., arXiv 2205.10733, algorithm 4): from each unit's gradient g the mean
//   gradient of the previous epoch is subtracted: d = g - mean. If <S, d> <= 0, the unit comes
//   early and S += d; else it comes late and S -= d. Each worker decides alone.
// - `id-grab`: PairBalance (Cooper et al., arXiv 2302.00845, algorithm 2). d is the difference of
//   two units' gradients; if <S, d> <= 0, the first unit comes early. Each worker decides alone.
// - `cd-grab`: PairBalance with one sum S for all workers whose gradients are averaged in a step
//   (orders/coordination.h).
//
// S restarts at 0 with each epoch and whenever the set of trained parameters changes. If such a
// change comes between the units of a pair, the first one's gradient is dropped, and the pair keeps
// its order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "data/balanced_order.h"
#include "data/published_order.h"
#include "orders/coordination.h"
#include "orders/order_kind.h"
#include "orders/unit_gradients.h"
#include "state/archive.h"

namespace abtrain::orders {

// Returns the memory that each member of a group of `workers` keeps for the order, as a multiple of
// the trained parameters' size in fp32. `batch`: the number of examples whose gradients arrive
// together; 0 if units arrive one at a time.
double order_copies(const OrderOptions& options, std::int64_t batch, int workers);

class Balancer {
 public:
  // `batch`: number of examples whose gradients arrive together, by step(units); 0 if units arrive
  // one at a time, by see() and step(gradients). `order` must outlive this object.
  Balancer(const OrderOptions& options, std::int64_t batch, data::PublishedOrder& order);

  bool takes_examples() const {
    return batch_ > 0;
  }

  // Starts an epoch in the order 0, 1, 2, ..., at unit `place`. Earlier units are not seen and keep
  // their order.
  void start(std::int64_t epoch, std::int64_t place);
  bool is_at(std::int64_t epoch, std::int64_t place) const {
    return epoch_ == epoch && place_ == place;
  }
  // Until the next bind(), gradients have `numel` elements and are averaged over `group` (null: no
  // group). Collective over the previously bound group.
  void bind(std::int64_t numel, c10::Device device, comm::Communicator* group);

  // Takes the elements begin .. begin + count - 1 of the next unit's gradient, which are final;
  // `gradients` is the whole flat gradient. They may be overwritten afterwards. May be called on
  // any thread, one call at a time.
  void see(const at::Tensor& gradients, std::int64_t begin, std::int64_t count);
  // Ends the unit. If see() was not called for it, takes the whole gradient now. Collective over
  // the group.
  void step(const at::Tensor& gradients);
  // Takes the next `batch` units. Collective over the group.
  void step(const nn::UnitGradients& units);

  // Finishes all collectives and decisions in flight. Collective over the group.
  void settle();
  // Saves or loads the state. Call it after bind(); to save, also after settle().
  void archive(state::Archive& archive);

  // For tests: called with all workers' signs before they are used.
  std::function<void(const std::vector<int>&)> watch_signs;

 private:
  bool is_alone() const {
    return group_ == nullptr || group_->size() == 1;
  }
  void advance(std::int64_t units);
  void take_signs(bool wait);
  void balance_alone(const nn::UnitGradients& units);

  const OrderOptions options_;
  const OrderKind& kind_;
  std::int64_t batch_;
  data::PublishedOrder& published_;
  data::BalancedOrder order_;
  std::int64_t epoch_ = 0;
  std::int64_t place_ = 0;  // the next unit's place in the epoch's order
  bool broken_ = false;     // the pair at `place_` lacks its first gradient

  comm::Communicator* group_ = nullptr;
  std::int64_t numel_ = 0;
  std::int64_t seen_ = 0;  // elements of the next unit's gradient seen so far
  at::Tensor sum_;         // S, or the worker's share of it
  SignQueue signs_;
  std::optional<Coordination> coordination_;
  // Used if a worker decides alone and its examples arrive together:
  ProductTriangle packer_;
  // Used by grab:
  at::Tensor mean_;           // mean gradient of the last epoch; initially zeros
  at::Tensor total_;          // sum of this epoch's gradients so far
  std::int64_t counted_ = 0;  // number of gradients in total_
};

}  // namespace abtrain::orders
