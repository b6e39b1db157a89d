// The averaging of a block's gradients over a group, bucket by bucket while the
// backward pass runs: what methods with gradients on the wire share.
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

class GradientReduction {
 public:
  GradientReduction(
      const compress::ReducerOptions& options,
      std::uint64_t seed,
      Observer& observer);

  // From now on the gradients of this block, over this group; both outlive it
  // or the next bind(). To be called again whenever the block's tensors move.
  // Forgets residuals.
  void bind(optim::ParameterBlock& block, comm::Communicator& group);
  void release();
  void watch(compress::GradientWatch watch) {
    exchange_.watch(std::move(watch));
  }

  // Before the last backward pass of step t: sends gradients as they come.
  void before_backward(std::int64_t t) {
    exchange_.begin(t);
  }
  // After it, also where before_backward() was not called: all are averaged.
  void reduce(std::int64_t t);

  const compress::Costs& costs() {
    return exchange_.costs();
  }
  // After bind(); what the block archives comes before both.
  void archive(state::Archive& archive, const std::string& prefix) {
    exchange_.archive(archive, prefix);
  }

 private:
  compress::GradientExchange exchange_;
  Observer& observer_;
  std::optional<optim::GradientHooks> hooks_;
};

// The slots of a block's gradient buffer.
std::vector<compress::Slot> slots_of(const optim::ParameterBlock& block);
// What slots_of() gives for a block of all parameters of a dense model, and of
// the factors `which` of the weights with a rank above 0 followed by all that
// stays dense. `ranks`: one a weight of the model, 0: dense.
std::vector<compress::Slot> dense_slots(const nn::Model& model);
std::vector<compress::Slot> factor_slots(
    const nn::Model& model,
    const std::vector<std::int64_t>& ranks,
    nn::Factor which);

}  // namespace abtrain::methods
