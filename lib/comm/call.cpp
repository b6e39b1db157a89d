#include "comm/call.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/traffic.h"
#include "device/tensor_text.h"

namespace abtrain::comm {

namespace {

void check_buffer(const at::Tensor& t, const char* call) {
  static constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                                              at::kInt,   at::kLong,   at::kByte};
  ABT_CHECK(
      t.defined() && t.dim() == 1 && t.is_contiguous() &&
          std::find(std::begin(kTypes), std::end(kTypes), t.scalar_type()) != std::end(kTypes),
      Config,
      "{}: expected a contiguous 1-D tensor of fp32, fp64, fp16, bf16, int32, "
      "int64 or uint8, got {}",
      call, t.defined() ? formatted("{}{}", c10::toString(t.scalar_type()), t.sizes()) : "none");
}

void check_pair(const at::Tensor& out, const at::Tensor& in, const char* call) {
  check_buffer(out, call);
  check_buffer(in, call);
  ABT_CHECK(
      out.scalar_type() == in.scalar_type() && out.device() == in.device(), Config,
      "{}: out is {} on {}, in is {} on {}", call, c10::toString(out.scalar_type()), out.device(),
      c10::toString(in.scalar_type()), in.device());
}

void check_counts(
    const Communicator& group, const std::vector<std::int64_t>& counts, const at::Tensor& out,
    const at::Tensor& in, Call::Kind kind) {
  const bool gathers = kind == Call::Kind::AllGather;
  const auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  ABT_CHECK(
      static_cast<int>(counts.size()) == group.size() && (gathers ? out : in).numel() == total &&
          (gathers ? in : out).numel() == counts[group.rank()] * (gathers ? 1 : group.size()),
      Config,
      "{}{} counts with a sum of {} elements for {} members; out has {} "
      "elements, in has {}",
      gathers ? "all_gather: " : "all_to_all: ", counts.size(), total, group.size(), out.numel(),
      in.numel());
}

void check_op(const at::Tensor& t, ReduceOp op, const char* call) {
  ABT_CHECK(
      op != ReduceOp::Mean || t.is_floating_point(), Config,
      "{}: a mean needs floating point, got {}", call, c10::toString(t.scalar_type()));
}

}  // namespace

Piece piece_of(const Call& call, int from, int to) {
  const auto begin_of = [&](int member) {
    const auto end = call.counts.begin() + member;
    return std::accumulate(call.counts.begin(), end, std::int64_t{0});
  };
  if (call.kind == Call::Kind::Broadcast) {
    return {0, 0, from == call.root ? call.out.numel() : 0};
  }
  if (call.kind == Call::Kind::AllToAll) {
    const std::int64_t count = call.counts[static_cast<std::size_t>(to)];
    return {begin_of(to), from * count, count};
  }
  return {0, begin_of(from), call.counts[static_cast<std::size_t>(from)]};
}

std::string describe(const Call& call) {
  static constexpr const char* kKinds[] = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier", "split"};
  static constexpr const char* kOps[] = {"sum", "mean", "max"};
  const char* kind = kKinds[static_cast<int>(call.kind)];
  const at::Tensor& t = call.source();
  if (call.kind == Call::Kind::Barrier || !t.defined()) {
    return kind;
  }
  std::string counts;
  for (const auto count : call.counts) {
    counts += formatted(" {}", count);
  }
  return formatted(
      "{} of {} {} on {}{}{}", kind, t.numel(), c10::toString(t.scalar_type()), t.device(),
      call.reduces() ? formatted(", {}", kOps[static_cast<int>(call.op)]) : "",
      call.kind == Call::Kind::Broadcast ? formatted(", root {}", call.root)
      : counts.empty()                   ? ""
                       : formatted(" into {}, counts{}", call.out.numel(), counts));
}

void Pending::wait() {
  if (work_) {
    const auto work = std::move(work_);
    std::exchange(work->wait, nullptr)();
  }
}

// A worker that is unwinding from an error does not wait for the others: they may be waiting for it
// in another call.
Pending::Work::~Work() {
  if (!wait || !give_up) {
    return;
  }
  try {
    ABT_CHECK(
        std::uncaught_exceptions() == errors, PeerLost,
        "a worker left a collective because of an error");
    wait();
  } catch (...) {
    give_up(std::current_exception());
  }
}

Pending Communicator::all_reduce(at::Tensor buffer, ReduceOp op, Purpose purpose) {
  check_buffer(buffer, "all_reduce");
  check_op(buffer, op, "all_reduce");
  return start({.kind = Call::Kind::AllReduce, .out = buffer, .op = op, .purpose = purpose});
}

Pending Communicator::all_gather(
    at::Tensor out, at::Tensor in, const std::vector<std::int64_t>& counts, Purpose purpose) {
  check_pair(out, in, "all_gather");
  check_counts(*this, counts, out, in, Call::Kind::AllGather);
  return start(
      {.kind = Call::Kind::AllGather, .out = out, .in = in, .counts = counts, .purpose = purpose});
}

Pending Communicator::reduce_scatter(at::Tensor out, at::Tensor in, ReduceOp op, Purpose purpose) {
  check_pair(out, in, "reduce_scatter");
  check_op(in, op, "reduce_scatter");
  const auto wanted = chunk_size(in.numel(), size(), rank());
  ABT_CHECK(
      out.numel() == wanted, Config, "reduce_scatter: member {} gets {} of {} elements, out has {}",
      rank(), wanted, in.numel(), out.numel());
  return start(
      {.kind = Call::Kind::ReduceScatter, .out = out, .in = in, .op = op, .purpose = purpose});
}

Pending Communicator::all_to_all(
    at::Tensor out, at::Tensor in, const std::vector<std::int64_t>& counts, Purpose purpose) {
  check_pair(out, in, "all_to_all");
  check_counts(*this, counts, out, in, Call::Kind::AllToAll);
  return start(
      {.kind = Call::Kind::AllToAll, .out = out, .in = in, .counts = counts, .purpose = purpose});
}

Pending Communicator::broadcast(at::Tensor buffer, int root, Purpose purpose) {
  check_buffer(buffer, "broadcast");
  ABT_CHECK(
      root >= 0 && root < size(), Config, "broadcast: root {} is not one of {} members", root,
      size());
  return start({.kind = Call::Kind::Broadcast, .out = buffer, .root = root, .purpose = purpose});
}

}  // namespace abtrain::comm
