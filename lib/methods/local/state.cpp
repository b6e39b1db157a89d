// The state of training with local steps: saving it, restoring it, and merging
// it for a different number of workers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include "base/error.h"
#include "base/interval.h"
#include "methods/average.h"
#include "methods/local/training.h"

namespace abtrain::methods {

void LocalTraining::archive(state::Archive& archive) {
  ABT_ASSERT(archive.is_loading() || !flight_ || flight_->settled, "a fragment is under way");
  std::int64_t fragment = flight_ ? flight_->fragment : -1;
  std::int64_t begun = flight_ ? flight_->begun : 0;
  archive.value("local.local", local_);
  archive.value("local.agreed_at", agreed_at_);
  archive.value("local.moments_agreed", moments_agreed_);
  archive.value("local.fragment", fragment);
  archive.value("local.begun", begun);
  if (archive.is_loading()) {
    make_dense_block();
  }
  // After the warm-up the workers' blocks differ, but x and everything derived from it are
  // bit-identical on all workers.
  trained_.archive(archive, "block.", local_ ? state::Owner::Worker : state::Owner::Replicas);
  if (archive.is_loading()) {
    x_ = local_ ? at::empty_like(trained_.values()) : at::Tensor();
    velocity_ = local_ && plan_.outer.has_velocity() ? at::empty_like(x_) : at::Tensor();
    flight_.reset();
    bind();
  }
  if (!local_) {
    reduction_.archive(archive, "reducer.");
    return;
  }
  archive.tensor("x", x_, state::Owner::Replicas);
  archive.tensor("velocity", velocity_, state::Owner::Replicas);
  for (std::size_t f = 0; f < exchanges_.size(); ++f) {
    exchanges_[f]->archive(archive, formatted("outer.{}.", f));
  }
  if (fragment < 0) {
    return;
  }
  ABT_CHECK(
      fragment < plan_.fragments && begun >= 0 && begun <= static_cast<std::int64_t>(kMaxSteps),
      DamagedData, "the checkpoint has fragment {} of {} under way since step {}", fragment,
      plan_.fragments, begun);
  if (archive.is_loading()) {
    flight_ = Flight{fragment, begun, /*settled=*/true};
    if (plan_.ends_round(fragment) && context_.model.updates_buffers()) {
      flight_->statistics = flattened(statistics_of(context_.model));  // only sets the sizes
    }
  }
  at::Tensor mean = scratch_.narrow(0, 0, fragments_[static_cast<std::size_t>(fragment)].numel);
  archive.tensor("mean", mean, state::Owner::Replicas);
  archive.tensor("statistics", flight_->statistics, state::Owner::Replicas);
}

void LocalTraining::regroup(std::vector<state::State>& old, std::int64_t t) {
  const at::NoGradGuard no_grad;
  load_mean(old);
  if (flight_) {
    apply_fragment(t);  // it was due at a step of the old run
  }
  const bool was_local = local_;
  local_ = t >= plan_.warmup;
  if (local_ && !was_local) {
    begin_local(t);
  } else {
    bind();  // the residuals belonged to other workers
    agree(t, true);
  }
}

}  // namespace abtrain::methods
