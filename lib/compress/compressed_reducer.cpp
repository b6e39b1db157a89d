#include "compress/compressed_reducer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
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
  buckets_ = std::move(buckets);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    Packed packed;
    packed.bucket = b;
    for (const Slot& slot : buckets_[b].slots) {
      (compresses(slot) ? packed.slots : packed.rest).push_back(slot);
    }
    // In the buffer's order, so that adjacent tensors stay adjacent.
    std::ranges::stable_sort(packed.slots, {}, &Slot::offset);
    packed.ranges = ranges_of(packed.slots);
    for (Slot& slot : packed.slots) {
      slot.offset = packed.numel;
      packed.numel += slot.numel();
    }
    states_.push_back({std::move(packed), {}});
  }
}

std::vector<Slot> CompressedReducer::plain_slots(const State& state, std::int64_t turn) const {
  return turn == kDense ? buckets_[state.packed.bucket].slots : state.packed.rest;
}

void CompressedReducer::accumulate(
    const Packed& packed, const at::Tensor& residual, const at::Tensor& gradients) {
  std::int64_t at = 0;
  for (const Range& range : packed.ranges) {
    at::Tensor part = residual.narrow(0, at, range.size);
    const at::Tensor from = gradients.narrow(0, range.begin, range.size);
    if (keeps_residual_) {
      part.add_(from);
    } else {
      part.copy_(from);
    }
    at += range.size;
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

  // The uncompressed rest is in flight while the scheme works.
  const std::vector<Range> rest = ranges_of(plain_slots(state, job.turn));
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
  if (job.turn != kDense && packed.numel > 0) {
    estimate = in_place ? job.gradients.narrow(0, packed.ranges[0].begin, packed.numel)
                        : at::empty({packed.numel}, options);
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
    rounds.emplace(exchange({&packed, u, estimate, &group, job.purpose, job.step, job.turn}));
    more = rounds->resume();
  }

  // It was sent first, so it arrives first.
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

Volume CompressedReducer::volume(Member member, std::int64_t turn) const {
  Volume volume;
  for (const State& state : states_) {
    volume = volume + member.all_reduce(
                          numel_of(ranges_of(plain_slots(state, turn))),
                          static_cast<std::int64_t>(c10::elementSize(plain_dtype_)));
    if (turn != kDense && state.packed.numel > 0) {
      volume = volume + exchanged(state.packed, member, turn);
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
      squares.push_back(at::dot(state.residual, state.residual));
    }
  }
  return squares;
}

}  // namespace abtrain::compress
