#include "methods/local/training.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "compress/schemes.h"
#include "methods/average.h"

namespace abtrain::methods {

LocalTraining::LocalTraining(const MethodContext& context)
    : Method(context, context.reducer),
      plan_(make_local_plan(context.options, context.length)),
      outer_wire_(context.options.outer.wire.or_else(context.reducer)) {}

Stage LocalTraining::now() {
  return {
      .phase = local_ ? Phase::Local : Phase::Full,
      .replicas = &context_.world,
      .gradient_group = local_ ? nullptr : &context_.world,
      .one_state = !local_};
}

void LocalTraining::start() {
  make_dense_block();
  if (plan_.warmup == 0) {
    begin_local(0);
  } else {
    bind();
  }
}

void LocalTraining::begin_local(std::int64_t t) {
  const at::NoGradGuard no_grad;
  local_ = true;
  x_ = trained_.values().clone();
  velocity_ = plan_.outer.has_velocity() ? at::zeros_like(x_) : at::Tensor();
  bind();
  agree(t, true);
}

void LocalTraining::bind() {
  reduction_.release();
  fragments_.clear();
  exchanges_.clear();
  if (!local_) {
    reduction_.bind(trained_, context_.world);
    return;
  }
  fragments_ =
      cut_fragments(slots_of(trained_), nn::weight_positions(context_.model), plan_.fragments);
  const auto largest = std::ranges::max_element(fragments_, {}, &Fragment::numel);
  scratch_ = at::empty({largest->numel}, x_.options());
  for (const Fragment& fragment : fragments_) {
    exchanges_.push_back(
        std::make_unique<compress::GradientExchange>(outer_wire_, context_.seed, plan_.interval));
    exchanges_.back()->bind(
        fragment.slots, scratch_.narrow(0, 0, fragment.numel), context_.world, comm::Purpose::Sync);
  }
}

compress::Costs LocalTraining::costs() {
  compress::Costs sum = Method::costs();
  for (const auto& exchange : exchanges_) {
    sum = sum + exchange->costs();
  }
  return sum;
}

void LocalTraining::after_step(std::int64_t t) {
  if (flight_ && t >= flight_->begun + plan_.delay) {
    apply_fragment(t);
  }
  const Stretch ended = ending_after(t);
  if (ended.after == Event::TrainAlone) {
    begin_local(t);
  } else if (ended.after == Event::SynchronizeFragment) {
    begin_fragment(ended.fragment, t);
    if (plan_.delay == 0) {
      apply_fragment(t);
    }
  }
}

void LocalTraining::begin_fragment(std::int64_t fragment, std::int64_t t) {
  const at::NoGradGuard no_grad;
  Stopwatch watch;
  const auto index = static_cast<std::size_t>(fragment);
  for (const compress::Range& range : fragments_[index].ranges) {
    at::Tensor change = range.in(scratch_);
    at::sub_out(change, range.of(trained_.values()), range.of(x_));
  }
  weigh(scratch_.narrow(0, 0, fragments_[index].numel), world_weight());
  exchanges_[index]->start(t);
  flight_ = Flight{fragment, t};
  if (plan_.ends_round(fragment) && context_.model.updates_buffers()) {
    flight_->statistics = flattened(statistics_of(context_.model));
    weigh(flight_->statistics, world_weight());
    flight_->pending =
        context_.world.all_reduce(flight_->statistics, comm::ReduceOp::Mean, comm::Purpose::Sync);
  }
  flight_->seconds = watch.seconds();
}

void LocalTraining::settle() {
  if (!flight_ || flight_->settled) {
    return;
  }
  const auto fragment = static_cast<std::size_t>(flight_->fragment);
  if (const auto evaluation = exchanges_[fragment]->finish(flight_->begun)) {
    context_.observer.compressed(flight_->begun, *evaluation);
  }
  flight_->pending.wait();
  flight_->settled = true;
}

void LocalTraining::apply_fragment(std::int64_t t) {
  const at::NoGradGuard no_grad;
  Stopwatch watch;
  settle();
  const Flight flight = std::move(*flight_);
  flight_.reset();
  for (const compress::Range& range :
       fragments_[static_cast<std::size_t>(flight.fragment)].ranges) {
    const at::Tensor x = range.of(x_);
    plan_.outer(x, range.in(scratch_), velocity_.defined() ? range.of(velocity_) : at::Tensor());
    at::Tensor values = range.of(trained_.values());
    if (plan_.mixing == 1) {
      values.copy_(x);
    } else {
      values.mul_(1 - plan_.mixing).add_(x, plan_.mixing);
    }
  }
  if (flight.statistics.defined()) {
    unflatten(flight.statistics, statistics_of(context_.model));
  }
  if (plan_.with_moments && trained_.moment_count() > 0) {
    average(
        {trained_.moments()}, context_.world, comm::Purpose::Sync,
        moment_wire(compress::plain_dtype(outer_wire_)), world_weight());
  }
  if (plan_.fragments == 1 && plan_.mixing == 1) {
    agree(t, plan_.with_moments || trained_.moment_count() == 0);
  }
  std::string mode = plan_.outer.rule != OuterRule::Average ? "outer"
                     : plan_.with_moments                   ? "params+moments"
                                                            : "params";
  if (plan_.fragments > 1) {
    mode += formatted(", fragment {}", flight.fragment);
  }
  context_.observer.synchronized(t, mode, flight.seconds + watch.seconds());
}

void LocalTraining::agree(std::int64_t t, bool with_moments) {
  agreed_at_ = t;
  moments_agreed_ = with_moments;
}

void LocalTraining::finish(std::int64_t t) {
  const at::NoGradGuard no_grad;
  if (local_) {
    Stopwatch watch;
    if (flight_) {
      apply_fragment(t);
    }
    // Uncompressed, because no later synchronization would send what compression leaves out.
    at::Tensor change = trained_.values() - x_;
    average(
        {change}, context_.world, comm::Purpose::Sync, compress::plain_dtype(outer_wire_),
        world_weight());
    trained_.values().copy_(x_.add_(change));
    agree(t, trained_.moment_count() == 0);
    context_.observer.synchronized(t, "params", watch.seconds());
  }
  Method::finish(t);
}

void LocalTraining::merge_into(nn::Model& target) {
  Method::merge_into(target);
  if (local_) {
    set_mean_dense(trained_.values(), context_.world, target, world_weight());
  }
}

std::vector<at::Tensor> LocalTraining::replicated_state() {
  std::vector<at::Tensor> state = {trained_.values()};
  if (!local_ || moments_agreed_) {
    state.push_back(trained_.moments());
  }
  return state;
}

}  // namespace abtrain::methods
