#include "compress/compressed_reducer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include "base/text.h"

namespace abtrain::compress {

void check_needs_feedback(
    const ReducerOptions& options, const std::string& section, std::int64_t /*members*/,
    Conflicts& out) {
  conflict_if(
      !has_error_feedback(options), out, {section + ".error_feedback", section + ".name"},
      "{} sends so little of each gradient that it only works with what "
      "it left out before: expected true",
      *options.name);
}

void CompressedReducer::bind(std::vector<Bucket> buckets) {
  for (const Bucket& bucket : buckets) {
    std::vector<Slot> compressed;
    std::vector<Slot> rest;
    for (const Slot& slot : bucket.slots) {
      (compresses(slot) ? compressed : rest).push_back(slot);
    }
    states_.push_back(
        {{PackedSlots(std::move(compressed)), states_.size()},
         bucket.ranges,
         ranges_of(std::move(rest))});
  }
}

void CompressedReducer::accumulate(
    const Packed& packed, const at::Tensor& residual, const at::Tensor& gradients) {
  for (const Range& range : packed.ranges) {
    if (keeps_residual_) {
      range.in(residual).add_(range.of(gradients));
    } else {
      range.in(residual).copy_(range.of(gradients));
    }
  }
}

Rounds CompressedReducer::reduce(Job job) {
  comm::Communicator& group = *job.group;
  if (group.size() == 1) {
    co_return;
  }
  State& state = states_[job.bucket];
  const Packed& packed = state.packed;
  const at::TensorOptions options = job.gradients.options();

  // The tensors that stay uncompressed are in flight while the scheme works.
  const std::vector<Range>& rest = job.dense ? state.all : state.rest;
  const at::Tensor wire = at::empty({numel_of(rest)}, options.dtype(plain_dtype_));
  const auto scale = static_cast<float>(1.0 / group.size());
  pack(job.gradients, rest, scale, wire);
  comm::Pending plain;
  if (!rest.empty()) {
    plain = group.all_reduce(wire, comm::ReduceOp::Sum, job.purpose);
  }

  std::optional<Rounds> rounds;
  at::Tensor estimate;
  // If the tensors are adjacent, the estimate is written in their place.
  const bool in_place = packed.ranges.size() == 1;
  bool more = false;
  if (!job.dense && packed.numel > 0) {
    estimate = in_place ? packed.ranges[0].of(job.gradients) : at::empty({packed.numel}, options);
    at::Tensor u = estimate;
    if (!in_place || keeps_residual_ || !works_in_place()) {
      if (!state.residual.defined()) {
        state.residual = at::zeros({packed.numel}, options);
      }
      // A residual from a checkpoint is on the CPU.
      state.residual = state.residual.to(job.gradients.device());
      accumulate(packed, state.residual, job.gradients);
      u = state.residual;
    }
    rounds.emplace(exchange({job, &packed, u, estimate}));
    more = rounds->resume();
  }

  // The uncompressed tensors were sent first, so they arrive first.
  co_yield std::move(plain);
  unpack(wire, rest, job.gradients);

  while (more) {
    co_yield rounds->take_pending();
    more = rounds->resume();
  }
  if (rounds && !in_place) {
    unpack(estimate, packed.ranges, job.gradients);
  }
}

Volume CompressedReducer::volume(Member member, bool dense) const {
  Volume volume;
  for (const State& state : states_) {
    volume = volume + member.all_reduce(
                          numel_of(dense ? state.all : state.rest),
                          static_cast<std::int64_t>(c10::elementSize(plain_dtype_)));
    if (!dense && state.packed.numel > 0) {
      volume = volume + exchanged(state.packed, member);
    }
  }
  return volume;
}

void CompressedReducer::archive(state::Archive& archive, const std::string& prefix) {
  for (State& state : states_) {
    archive.tensor(
        formatted("{}residual.{}", prefix, state.packed.bucket), state.residual,
        state::Owner::Worker, state.packed.numel);
    archive_more(archive, prefix, state.packed);
  }
}

std::vector<at::Tensor> CompressedReducer::residual_squares() const {
  std::vector<at::Tensor> squares;
  for (const State& state : states_) {
    if (state.residual.defined() && keeps_residual_) {
      squares.push_back(at::linalg_vector_norm(state.residual, 2, {}, false, at::kDouble).square());
    }
  }
  return squares;
}

}  // namespace abtrain::compress
