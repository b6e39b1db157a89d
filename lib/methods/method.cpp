#include "methods/method.h"

#include <ATen/core/grad_mode.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "comm/share.h"
#include "methods/average.h"
#include "methods/method_kind.h"

namespace abtrain::methods {

Method::Method(const MethodContext& context, const compress::ReducerOptions& dense)
    : context_(context),
      timeline_(kind_of(context.options).timeline(context.options, context.length)),
      reduction_(dense, context.seed, context.observer) {}

void Method::finish(std::int64_t) {
  average_buffers(context_.model, context_.world, comm::Purpose::Sync, world_weight());
}

void Method::merge_into(nn::Model& target) {
  const nn::Model& source = context_.model;
  for (std::size_t i = 0; i < source.weights().size(); ++i) {
    const nn::Weight& from = *source.weights()[i].weight;
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
         event == Event::SynchronizeAndDecompose;
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
  std::uint64_t hash = 0;  // of all bits so far
  for (const at::Tensor& tensor : replicated_state()) {
    const at::Tensor here = tensor.cpu().contiguous();
    hash = XXH3_64bits_withSeed(here.const_data_ptr(), here.nbytes(), hash);
  }
  const auto hashes = comm::gather_values(*now().replicas, hash);
  for (std::size_t r = 1; r < hashes.size(); ++r) {
    ABT_CHECK(
        hashes[r] == hashes[0], Diverged,
        "step {}: replicas differ: worker {} of the group does not hold the "
        "same bits as worker 0",
        t, r);
  }
}

}  // namespace abtrain::methods
