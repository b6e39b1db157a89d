#include "comm/local.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <numeric>

#include "base/error.h"
#include "comm/local_group.h"
#include "comm/traffic.h"

namespace abtrain::comm {

namespace {

using Kind = LocalCall::Kind;

// One worker's end of a group: its calls that are not complete yet.
class Member {
 public:
  Member(std::shared_ptr<LocalGroup> joined, int rank_in_group)
      : group(std::move(joined)), rank(rank_in_group) {}

  std::shared_ptr<LocalOperation> post(LocalCall call) {
    open_.push_back(group->post(rank, next_++, std::move(call)));
    return open_.back();
  }

  // In order, as every member does: no two can wait for each other.
  void complete_up_to(const LocalOperation& operation) {
    while (!open_.empty() && open_.front()->sequence <= operation.sequence) {
      group->complete(*open_.front(), rank);
      open_.pop_front();
    }
  }

  const std::shared_ptr<LocalGroup> group;
  const int rank;

 private:
  std::uint64_t next_ = 0;
  std::deque<std::shared_ptr<LocalOperation>> open_;
};

class LocalWork : public Pending::Work {
 public:
  LocalWork(
      std::shared_ptr<Member> member,
      std::shared_ptr<LocalOperation> operation)
      : member_(std::move(member)),
        operation_(std::move(operation)),
        errors_(std::uncaught_exceptions()) {}

  void wait() override {
    waited_ = true;
    member_->complete_up_to(*operation_);
  }

  ~LocalWork() override {
    if (waited_) {
      return;
    }
    try {
      // A worker on its way out of an error does not wait for the others,
      // which may be waiting for it elsewhere.
      ABT_CHECK(
          std::uncaught_exceptions() == errors_,
          PeerLost,
          "a worker left a collective because of an error");
      member_->complete_up_to(*operation_);
    } catch (...) {
      member_->group->state().abort(std::current_exception());
    }
  }

 private:
  std::shared_ptr<Member> member_;
  std::shared_ptr<LocalOperation> operation_;
  int errors_;
  bool waited_ = false;
};

void check_buffer(const at::Tensor& t, const char* call) {
  static constexpr at::ScalarType kTypes[] = {
      at::kFloat,
      at::kDouble,
      at::kHalf,
      at::kBFloat16,
      at::kInt,
      at::kLong,
      at::kByte};
  ABT_CHECK(
      t.defined() && t.dim() == 1 && t.is_contiguous() &&
          std::find(std::begin(kTypes), std::end(kTypes), t.scalar_type()) !=
              std::end(kTypes),
      Config,
      call,
      ": expected a contiguous 1-D tensor of fp32, fp64, fp16, bf16, int32, "
      "int64 or uint8, got ",
      t.defined() ? abtrain::str(c10::toString(t.scalar_type()), t.sizes())
                  : "none");
}

void check_pair(const at::Tensor& out, const at::Tensor& in, const char* call) {
  check_buffer(out, call);
  check_buffer(in, call);
  ABT_CHECK(
      out.scalar_type() == in.scalar_type() && out.device() == in.device(),
      Config,
      call,
      ": out is ",
      c10::toString(out.scalar_type()),
      " on ",
      out.device(),
      ", in is ",
      c10::toString(in.scalar_type()),
      " on ",
      in.device());
}

void check_op(const at::Tensor& t, ReduceOp op, const char* call) {
  ABT_CHECK(
      op != ReduceOp::Mean || t.is_floating_point(),
      Config,
      call,
      ": a mean needs floating point, got ",
      c10::toString(t.scalar_type()));
}

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<LocalGroup> group, int rank)
      : member_(std::make_shared<Member>(std::move(group), rank)) {}

  int rank() const override {
    return member_->rank;
  }
  int size() const override {
    return member_->group->size();
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    const auto done =
        complete({.kind = Kind::Split, .color = color, .key = key});
    const auto& [group, rank] = done->parts[member_->rank];
    return std::make_unique<LocalCommunicator>(group, rank);
  }

  Pending all_reduce(at::Tensor buffer, ReduceOp op, Purpose) override {
    check_buffer(buffer, "all_reduce");
    check_op(buffer, op, "all_reduce");
    return start({.kind = Kind::AllReduce, .out = buffer, .op = op});
  }

  Pending all_gather(
      at::Tensor out,
      at::Tensor in,
      const std::vector<std::int64_t>& counts,
      Purpose) override {
    check_pair(out, in, "all_gather");
    const auto total =
        std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    ABT_CHECK(
        static_cast<int>(counts.size()) == size() && out.numel() == total &&
            in.numel() == counts[rank()],
        Config,
        "all_gather: ",
        counts.size(),
        " counts of ",
        total,
        " elements in all, for ",
        size(),
        " members, out of ",
        out.numel(),
        " and in of ",
        in.numel());
    return start(
        {.kind = Kind::AllGather, .out = out, .in = in, .counts = counts});
  }

  Pending reduce_scatter(at::Tensor out, at::Tensor in, ReduceOp op, Purpose)
      override {
    check_pair(out, in, "reduce_scatter");
    check_op(in, op, "reduce_scatter");
    const auto wanted = chunk_size(in.numel(), size(), rank());
    ABT_CHECK(
        out.numel() == wanted,
        Config,
        "reduce_scatter: member ",
        rank(),
        " gets ",
        wanted,
        " of ",
        in.numel(),
        " elements, out has ",
        out.numel());
    return start({.kind = Kind::ReduceScatter, .out = out, .in = in, .op = op});
  }

  Pending broadcast(at::Tensor buffer, int root, Purpose) override {
    check_buffer(buffer, "broadcast");
    ABT_CHECK(
        root >= 0 && root < size(),
        Config,
        "broadcast: root ",
        root,
        " of ",
        size(),
        " members");
    return start({.kind = Kind::Broadcast, .out = buffer, .root = root});
  }

  void barrier() override {
    complete({.kind = Kind::Barrier});
  }

  void check_peers() override {
    member_->group->state().throw_if_aborted();
  }

 private:
  Pending start(LocalCall call) {
    call.ready = device::Event::record(call.out.device());
    auto operation = member_->post(std::move(call));
    return Pending(std::make_unique<LocalWork>(member_, std::move(operation)));
  }
  std::shared_ptr<LocalOperation> complete(LocalCall call) {
    auto operation = member_->post(std::move(call));
    member_->complete_up_to(*operation);
    return operation;
  }

  std::shared_ptr<Member> member_;
};

}  // namespace

LocalWorld::LocalWorld(int size, double timeout_seconds)
    : size_(size), state_(std::make_shared<LocalState>(timeout_seconds)) {
  ABT_CHECK(size > 0, Config, "workers: expected at least 1, got ", size);
}

std::vector<std::unique_ptr<Communicator>> LocalWorld::communicators() {
  std::vector<int> workers(size_);
  std::iota(workers.begin(), workers.end(), 0);
  const auto group = LocalGroup::make(state_, workers);
  std::vector<std::unique_ptr<Communicator>> all;
  for (int i = 0; i < size_; ++i) {
    all.push_back(std::make_unique<LocalCommunicator>(group, i));
  }
  return all;
}

void LocalWorld::abort(std::exception_ptr cause) noexcept {
  state_->abort(std::move(cause));
}

std::exception_ptr LocalWorld::cause() const {
  return state_->cause();
}

}  // namespace abtrain::comm
