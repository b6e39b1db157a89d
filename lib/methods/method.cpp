#include "methods/method.h"

#include <ATen/core/grad_mode.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "base/error.h"
#include "base/interval.h"
#include "base/mapped.h"
#include "comm/share.h"
#include "methods/average.h"
#include "methods/method_kind.h"

namespace abtrain::methods {

Method::Method(const MethodContext& context, const compress::ReducerOptions& dense)
    : context_(context),
      planned_(context.options),
      timeline_(kind_of(context.options).timeline(context.options, context.length)),
      reduction_(dense, context.seed, context.observer) {
  if (context.length.by_clock) {
    for (Duration* const one : planned_durations()) {
      *one = Duration::steps(static_cast<double>(one->in_steps(context.length)));
    }
  }
}

std::vector<Duration*> Method::planned_durations() {
  return {
      &planned_.warmup_steps, &planned_.sync_every, &planned_.full_rank_steps,
      &planned_.anneal_steps};
}

void Method::finish(std::int64_t) {
  average_buffers(context_.model, context_.world, comm::Purpose::Sync, world_weight());
}

void Method::merge_into(nn::Model& target) {
  const nn::Model& source = context_.model;
  target.set_base(source.base());
  for (std::size_t i = 0; i < source.weights().size(); ++i) {
    const nn::Weight& from = *source.weights()[i].weight;
    target.weights()[i].weight->adopt_form(from);
    if (!from.is_factored()) {
      target.weights()[i].weight->set_dense(from.dense.detach());
    }
  }
  for (std::size_t i = 0; i < source.parameters().size(); ++i) {
    *target.parameters()[i].tensor = source.parameters()[i].tensor->detach();
  }
  for (std::size_t i = 0; i < source.buffers().size(); ++i) {
    *target.buffers()[i].tensor = source.buffers()[i].tensor->clone();
  }
  average_buffers(target, context_.world, comm::Purpose::Metrics, world_weight());
}

void Method::before_backward(std::int64_t t) {
  if (GradientReduction* used = reduction()) {
    used->begin(t);
  }
}

void Method::reduce_gradients(std::int64_t t) {
  if (GradientReduction* used = reduction()) {
    used->reduce(t);
  }
}

Stretch Method::ending_after(std::int64_t t) {
  const Stretch stretch = timeline_.ending_after(t);
  return stretch.phase == now().phase ? stretch : Stretch();
}

std::int64_t Method::agreed_after(std::int64_t t) {
  return now().gradient_group == &context_.world ? t : timeline_.last_event(t).at;
}

bool Method::moves_after(std::int64_t t) {
  const Event event = ending_after(t).after;
  return event == Event::Decompose || event == Event::Synchronize ||
         event == Event::SynchronizeAndDecompose ||
         (event == Event::AverageFactors && context_.options.roles == Roles::Alternate);
}

void Method::replan(std::int64_t t) {
  const RunLength& length = context_.length;
  const MethodOptions& given = context_.options;
  const auto steps = [&](const Duration& duration) { return duration.in_steps(length); };
  // Sets `planned` to `fresh` steps, or keeps its length if step `moment` has passed.
  const auto keep_from = [&](std::int64_t moment, Duration& planned, std::int64_t fresh) {
    planned = Duration::steps(static_cast<double>(moment <= t ? steps(planned) : fresh));
  };
  const std::int64_t warmup = steps(planned_.warmup_steps);
  const std::int64_t interval = steps(planned_.sync_every);
  const bool from_start = given.anchor == Anchor::Reference;
  const std::int64_t first = warmup + (from_start ? 0 : interval / given.fragments);
  // The last cut comes with the first synchronization at or after the end of the annealing.
  const std::int64_t origin = from_start ? 0 : warmup;
  const std::int64_t annealing = warmup + steps(planned_.anneal_steps) - origin;
  const std::int64_t last_cut = origin + (annealing + interval - 1) / interval * interval;
  keep_from(warmup, planned_.warmup_steps, std::max(t + 1, steps(given.warmup_steps)));
  const std::int64_t since = t + 1 - steps(planned_.warmup_steps);
  const std::int64_t full_rank = steps(given.full_rank_steps);
  const bool has_full_rank = kind_of(given).factors_weights && given.full_rank_steps.value > 0;
  // Long enough for a step of each phase or fragment, and for the first event to lie ahead.
  const std::int64_t fresh = std::max(
      {given.fragments * since, steps(given.sync_every),
       has_full_rank ? 2 : given.fragments * (given.delay + 1)});
  keep_from(first, planned_.sync_every, fresh);
  keep_from(
      first, planned_.full_rank_steps,
      has_full_rank ? std::clamp<std::int64_t>(full_rank, 1, steps(planned_.sync_every) - 1) : 0);
  if (given.anneal_steps.value > 0) {
    keep_from(last_cut, planned_.anneal_steps, std::max(since, steps(given.anneal_steps)));
  }
  make_plan();
}

void Method::archive_plan(state::Archive& archive) {
  if (!context_.length.by_clock) {
    return;
  }
  const std::vector<Duration*> durations = planned_durations();
  std::vector<double> values = mapped(durations, [](const Duration* one) { return one->value; });
  archive.value("planned_steps", values);
  if (!archive.is_loading()) {
    return;
  }
  ABT_CHECK(
      values.size() == durations.size() &&
          std::ranges::all_of(values, [](double v) { return v >= 0 && v <= kMaxSteps; }),
      DamagedData, "the checkpoint's value 'planned_steps': expected {} lengths in steps",
      durations.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    *durations[i] = Duration::steps(values[i]);
  }
  make_plan();
}

void Method::make_plan() {
  RunLength length = context_.length;
  // A timeline needs a step after the warm-up, even if the run ends during the warm-up.
  length.steps = std::max(length.steps, planned_.warmup_steps.in_steps(length) + 1);
  timeline_ = kind_of(planned_).timeline(planned_, length);
  replanned(length);
}

void Method::make_dense_block() {
  trained_ =
      optim::ParameterBlock(dense_parameters(context_.model), true, context_.optimizer.moments());
  moved();
}

void Method::load_mean(std::span<state::State> old, const std::function<void()>& loaded) {
  const at::NoGradGuard no_grad;
  at::Tensor values;
  at::Tensor moments;
  for (state::State& state : old) {
    auto loading = state::Archive::loading(state);
    archive(loading);
    if (loaded) {
      loaded();
    }
    values = values.defined() ? values.add_(trained_.values()) : trained_.values().clone();
    moments = moments.defined() ? moments.add_(trained_.moments()) : trained_.moments().clone();
  }
  const auto n = static_cast<double>(old.size());
  trained_.values().copy_(values.div_(n));
  trained_.moments().copy_(moments.div_(n));
}

void Method::check_replicas(std::int64_t t) {
  if (!replicas_agree(t)) {
    return;
  }
  std::uint64_t hash = 0;  // of all tensors so far
  for (const at::Tensor& tensor : replicated_state()) {
    const at::Tensor here = tensor.cpu().contiguous();
    hash = XXH3_64bits_withSeed(here.const_data_ptr(), here.nbytes(), hash);
  }
  const auto hashes = comm::gather_values(*now().replicas, hash);
  for (std::size_t r = 1; r < hashes.size(); ++r) {
    if (hashes[r] != hashes[0]) {
      throw StepError(
          ErrorKind::Diverged, t,
          formatted(
              "replicas differ: worker {} of the group does not hold the same bits as worker 0",
              r));
    }
  }
}

}  // namespace abtrain::methods
