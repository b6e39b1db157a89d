// Averages a block's gradients over a group, bucket by bucket while the
// backward pass runs; shared by the methods that send gradients.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "compress/gradient_exchange.h"
#include "nn/model.h"
#include "optim/gradient_hooks.h"
#include "optim/parameter_block.h"

namespace abtrain::methods {

class Observer;

class GradientReduction : public compress::GradientExchange {
 public:
  GradientReduction(
      const compress::ReducerOptions& options, std::uint64_t seed, Observer& observer);

  // From now on averages the gradients of this block over this group; both must
  // live as long as this object or until the next bind(). Must be called again
  // whenever the block's tensors move. Forgets the residuals.
  void bind(optim::ParameterBlock& block, comm::Communicator& group);
  void release();
  // Call after the last backward pass of step t: averages all gradients. If begin(t) was called
  // before that pass, gradients are sent as soon as they are ready.
  void reduce(std::int64_t t);
  // Call archive() after bind(), and archive the block before both.

 private:
  Observer& observer_;
  std::optional<optim::GradientHooks> hooks_;
};

// The slots of a block's gradient buffer.
std::vector<compress::Slot> slots_of(const optim::ParameterBlock& block);
// What slots_of() returns for a block of all parameters of a dense model (dense_slots), or for a
// block of factors (factor_slots): the factors `which`, all A first, of the weights with a rank
// above 0, then everything that stays dense. `ranks`: one per weight of the model; 0: dense. Frozen
// tensors have no slots.
std::vector<compress::Slot> dense_slots(const nn::Model& model);
std::vector<compress::Slot> factor_slots(
    const nn::Model& model, const std::vector<std::int64_t>& ranks,
    const std::vector<nn::Factor>& which);

}  // namespace abtrain::methods
