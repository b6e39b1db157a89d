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

  // From now on averages the gradients of this block over this group; both must live as long as
  // this object or until the next bind(). Must be called again whenever the block's tensors move.
  // Drops the residuals (unsent parts of earlier gradients).
  void bind(optim::ParameterBlock& block, comm::Communicator& group);
  void release();
  // Averages all gradients; call it after the last backward pass of step t. If begin(t) was called
  // before that pass, gradients were already sent as they became ready.
  void reduce(std::int64_t t);
  // To load, archive the block, call bind(), then archive().

 private:
  Observer& observer_;
  std::optional<optim::GradientHooks> hooks_;
};

// The slots of a block's gradient buffer: the place of each tensor.
std::vector<compress::Slot> slots_of(const optim::ParameterBlock& block);
// Return the slots of a block that does not exist yet. dense_slots(): all parameters of the dense
// model. factor_slots(): for each factor in `which`, that factor of all weights with a rank above
// 0; then everything that stays dense. `ranks`: one per weight of the model; 0: dense. Frozen
// tensors have no slots.
std::vector<compress::Slot> dense_slots(const nn::Model& model);
std::vector<compress::Slot> factor_slots(
    const nn::Model& model, const std::vector<std::int64_t>& ranks,
    const std::vector<nn::Factor>& which);

}  // namespace abtrain::methods
