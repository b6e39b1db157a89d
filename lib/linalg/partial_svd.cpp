// The partial route of a decomposition.
#include <ATen/ops/eye.h>

#include <algorithm>

#include "base/error.h"
#include "linalg/gram.h"
#include "linalg/svd_state.h"

namespace abtrain::linalg {

void Decomposition::State::take_found() {
  eigenvalues = finder->eigenvalues();
  rest_energy = finder->rest_energy() / scale / scale;
  rest_bound = finder->rest_bound() / scale;
  set_values();
}

Decomposition Decomposition::partial(
    const at::Tensor& matrix,
    const std::string& layer,
    const RankRule& rule,
    const at::Tensor& warm) {
  const Gram gram = whole_gram_of(matrix, layer);
  const auto n = matrix.size(1);
  if (gram.matrix.diagonal().max().item<double>() <= 0) {
    return of_gram(
        layer,
        std::vector<double>(static_cast<std::size_t>(n), 0.0),
        at::eye(n, gram.matrix.options()),
        1);
  }
  auto state = std::make_unique<State>();
  state->layer = layer;
  state->n = n;
  state->scale = gram.scale;
  state->finder = std::make_unique<RangeFinder>(gram.matrix, layer, warm);
  Decomposition result(std::move(state));
  if (result.state_->finder->capture(rule, matrix.size(0))) {
    result.state_->take_found();
  } else {
    result.take_all();
  }
  return result;
}

void Decomposition::take_all() {
  at::Tensor gram = state_->finder->gram();
  state_->finder.reset();
  state_->rest_energy = state_->rest_bound = 0;
  if (!gram.is_cuda()) {
    auto buffer = symmetric_buffer(state_->n);
    buffer.slice(0, 0, state_->n).slice(1, 0, state_->n).copy_(gram);
    gram = std::move(buffer);
  }
  state_->solve(gram);
}

void Decomposition::grow(std::int64_t count, std::int64_t m) {
  if (!state_->finder || count <= std::ssize(state_->values)) {
    return;
  }
  // A rank too large to save anything is never chosen.
  RankRule rule;
  rule.rule = RankRuleName::Fixed;
  rule.rank = std::min(count, (m * state_->n - 1) / (m + state_->n));
  if (state_->finder->capture(rule, m)) {
    state_->take_found();
  } else {
    take_all();
  }
}

at::Tensor Decomposition::next_start() const {
  return state_->finder ? state_->finder->next_start() : at::Tensor();
}

std::int64_t Decomposition::searched() const {
  return state_->finder ? state_->finder->basis_size() : 0;
}

}  // namespace abtrain::linalg
