#include "methods/gradient_reduction.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "methods/method.h"

namespace abtrain::methods {

GradientReduction::GradientReduction(
    const compress::ReducerOptions& options, std::uint64_t seed, Observer& observer)
    : GradientExchange(options, seed), observer_(observer) {}

void GradientReduction::bind(optim::ParameterBlock& block, comm::Communicator& group) {
  hooks_.reset();
  GradientExchange::bind(slots_of(block), block.gradients(), group);
  // A worker alone has nothing to send early.
  if (group.size() > 1) {
    hooks_.emplace(block, [this](std::size_t index) { ready(index); });
  }
}

void GradientReduction::release() {
  hooks_.reset();
  GradientExchange::release();
}

void GradientReduction::reduce(std::int64_t t) {
  if (const auto evaluation = finish(t)) {
    observer_.compressed(t + 1, *evaluation);
  }
}

std::vector<compress::Slot> slots_of(const optim::ParameterBlock& block) {
  std::vector<compress::Slot> slots;
  for (std::size_t i = 0; i < block.parameters().size(); ++i) {
    const optim::ParameterRef& p = block.parameters()[i];
    slots.push_back({p.name, block.offset(i), p.tensor->sizes().vec(), p.position});
  }
  return slots;
}

std::vector<compress::Slot> dense_slots(const nn::Model& model) {
  return factor_slots(model, std::vector<std::int64_t>(model.weights().size(), 0), {nn::Factor::A});
}

std::vector<compress::Slot> factor_slots(
    const nn::Model& model, const std::vector<std::int64_t>& ranks,
    const std::vector<nn::Factor>& which) {
  std::vector<compress::Slot> slots;
  std::vector<compress::Slot> dense;
  for (const nn::Factor factor : which) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const nn::NamedWeight& w = model.weights()[i];
      if (ranks[i] > 0) {
        slots.push_back({w.name, 0, w.weight->stored_sizes(factor, ranks[i]), w.position});
      } else if (factor == which.front() && !w.weight->is_frozen()) {
        dense.push_back({w.name, 0, w.weight->sizes(), w.position});
      }
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    if (!p.is_frozen) {
      dense.push_back({p.name, 0, p.tensor->sizes().vec(), p.position});
    }
  }
  // In the order of dense_parameters().
  std::ranges::sort(dense, {}, &compress::Slot::position);
  std::ranges::move(dense, std::back_inserter(slots));
  compress::line_up(slots);
  return slots;
}

}  // namespace abtrain::methods
