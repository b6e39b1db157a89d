#include "comm/local/world.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/mapped.h"
#include "comm/call.h"
#include "comm/traffic.h"

namespace abtrain::comm {

namespace {

using Kind = Call::Kind;

// Up to this many bytes over all members, one member does all the work: waiting for each other a
// second time would cost more.
constexpr std::int64_t kAloneBytes = 256 << 10;

// Copies a piece between flat buffers. On the CPU, copies bytes without making views, which saves
// time when many members exchange few elements.
void copy(const at::Tensor& to, const at::Tensor& from, const Piece& piece) {
  const auto size = static_cast<std::int64_t>(to.element_size());
  const auto* begin = static_cast<const char*>(from.const_data_ptr()) + piece.source * size;
  auto* place = static_cast<char*>(to.mutable_data_ptr()) + piece.target * size;
  if (piece.count == 0 || begin == place) {
    return;
  }
  if (to.is_cuda()) {
    const at::NoGradGuard no_grad;
    to.narrow(0, piece.target, piece.count).copy_(from.narrow(0, piece.source, piece.count));
  } else {
    std::memmove(place, begin, static_cast<std::size_t>(piece.count * size));
  }
}

bool alike(const Call& a, const Call& b) {
  const auto same_buffer = [](const at::Tensor& x, const at::Tensor& y) {
    return x.defined() == y.defined() &&
           (!x.defined() || (x.scalar_type() == y.scalar_type() && x.device() == y.device()));
  };
  return a.kind == b.kind && a.op == b.op && a.root == b.root && a.counts == b.counts &&
         same_buffer(a.out, b.out) && a.common_buffer().numel() == b.common_buffer().numel();
}

bool is_large(const Call& call, int members) {
  return call.out.defined() &&
         static_cast<std::int64_t>(std::max(call.source().nbytes(), call.out.nbytes())) * members >
             kAloneBytes;
}

}  // namespace

// A collective under way. The group's mutex guards everything until `posted` is set; after that the
// calls do not change.
struct LocalOperation {
  LocalOperation(std::uint64_t number, int size)
      : sequence(number), calls(size), came(size), ended(size) {}

  // The buffers of all members, in rank order.
  std::vector<at::Tensor> buffers() const {
    return mapped(calls, &Call::common_buffer);
  }

  const std::uint64_t sequence;  // the same on every member
  std::vector<Call> calls;
  std::vector<bool> came;   // members that have posted
  std::vector<bool> ended;  // members that have done their share
  int at_work = 0;          // members now touching the buffers
  std::atomic<bool> posted = false;
  std::atomic<bool> done = false;
  std::string mismatch;
  device::Event result;
  // For a split: each member's new group and its rank there.
  std::vector<std::pair<std::shared_ptr<LocalGroup>, int>> parts;
};

// The state that the members of a group share: the collectives under way, and the means to wait for
// each other.
class LocalGroup {
 public:
  LocalGroup(std::shared_ptr<LocalWorld> world, std::vector<int> workers)
      : world_(std::move(world)), workers_(std::move(workers)) {}

  int size() const {
    return static_cast<int>(workers_.size());
  }
  LocalWorld& world() {
    return *world_;
  }

  // Posts the member's call number `sequence` (from 0). Does not wait for the others.
  std::shared_ptr<LocalOperation> post(int rank, std::uint64_t sequence, Call call) {
    std::shared_ptr<LocalOperation> operation;
    {
      const Lock lock(mutex_);
      world_->throw_if_happened();
      auto& entry = open_[sequence];
      if (!entry) {
        entry = std::make_shared<LocalOperation>(sequence, size());
      }
      operation = entry;
      operation->calls[rank] = std::move(call);
      operation->came[rank] = true;
      if (std::ranges::count(operation->came, false) > 0) {
        return operation;
      }
      open_.erase(sequence);
      ++operation->at_work;
    }
    // The last member to post checks all calls; the others wait for `posted`.
    try {
      begin(*operation);
    } catch (...) {
      world_->abort(std::current_exception());
      const Lock lock(mutex_);
      --operation->at_work;
      changed_.notify_all();
      throw;
    }
    return operation;
  }

  // Does this member's share and returns when all members have done theirs.
  void complete(LocalOperation& operation, int rank) {
    Lock lock(mutex_);
    meet(lock, operation, operation.posted, operation.came);
    if (!operation.done) {
      ++operation.at_work;
      lock.unlock();
      // Only large CPU calls that have passed the check come here, so this cannot throw.
      do_share(operation, rank);
      lock.lock();
      --operation.at_work;
      operation.ended[rank] = true;
      operation.done = std::ranges::count(operation.ended, false) == 0;
      if (operation.done || world_->happened()) {
        changed_.notify_all();
      }
      meet(lock, operation, operation.done, operation.ended);
    }
    // Nobody reads the call any more, so drop its tensors.
    const Call mine = std::move(operation.calls[rank]);
    lock.unlock();
    operation.result.order_after();
  }

  void wake() {
    const Lock lock(mutex_);
    changed_.notify_all();
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void begin(LocalOperation& operation) {
    std::string mismatch = compare(operation);
    const Call& first = operation.calls.front();
    const bool on_cuda = first.out.defined() && first.out.is_cuda();
    const bool alone = mismatch.empty() && (on_cuda || size() == 1 || !is_large(first, size()));
    if (alone) {
      do_all(operation);
    } else if (!mismatch.empty()) {
      world_->abort(std::make_exception_ptr(Error(ErrorKind::Config, mismatch)));
    }
    const Lock lock(mutex_);
    operation.mismatch = std::move(mismatch);
    operation.done = alone;
    operation.posted = true;
    --operation.at_work;
    changed_.notify_all();
  }

  // Returns when `flag` is set; throws if the world fails before the operation is done. A time-out
  // names the workers that are not in `members`.
  void meet(
      Lock& lock, const LocalOperation& operation, const std::atomic<bool>& flag,
      const std::vector<bool>& members) {
    const auto came = [&] { return flag.load() || world_->happened(); };
    if (!changed_.wait_for(lock, std::chrono::duration<double>(world_->timeout), came)) {
      const auto first = std::ranges::find(operation.came, true) - operation.came.begin();
      std::vector<int> missing;
      for (int i = 0; i < size(); ++i) {
        if (!members[i]) {
          missing.push_back(workers_[i]);
        }
      }
      const TimedOut late(
          describe(operation.calls[static_cast<std::size_t>(first)]), world_->timeout, missing);
      lock.unlock();
      world_->abort(std::make_exception_ptr(late));
      lock.lock();
    }
    if (!operation.done && world_->happened()) {
      // The caller may free its buffer once this has thrown, so first wait for the members that
      // still work on it.
      changed_.wait(lock, [&] { return operation.at_work == 0; });
      ABT_CHECK(operation.mismatch.empty(), Config, "{}", operation.mismatch);
      world_->throw_if_happened();
    }
  }

  std::string compare(const LocalOperation& operation) const {
    const Call& first = operation.calls.front();
    for (int i = 1; i < size(); ++i) {
      if (!alike(first, operation.calls[i])) {
        return formatted(
            "workers called different collectives: worker {} {}; worker {} {}", workers_[0],
            describe(first), workers_[i], describe(operation.calls[i]));
      }
    }
    return {};
  }

  void do_all(LocalOperation& operation) {
    const Call& first = operation.calls.front();
    for (const Call& call : operation.calls) {
      call.ready.order_after();
    }
    if (first.kind == Kind::Split) {
      do_split(operation);
    } else if (first.kind == Kind::AllReduce && size() == 1) {
      // The buffer is its own sum.
    } else if (first.kind == Kind::AllReduce) {
      const auto buffers = operation.buffers();
      ops::reduce_buffers(buffers, 0, first.out.numel(), buffers, 0, first.op);
    } else {
      for (int i = 0; i < size(); ++i) {
        do_share(operation, i);
      }
    }
    if (first.out.defined()) {
      operation.result = device::Event::record(first.out.device());
    }
  }

  void do_share(const LocalOperation& operation, int rank) const {
    const Call& mine = operation.calls[rank];
    if (mine.reduces()) {
      const auto buffers = operation.buffers();
      const auto numel = mine.common_buffer().numel();
      const auto begin = chunk_begin(numel, size(), rank);
      const auto count = chunk_size(numel, size(), rank);
      const bool in_place = mine.kind == Kind::AllReduce;
      ops::reduce_buffers(
          buffers, begin, count, in_place ? buffers : std::vector{mine.out}, in_place ? begin : 0,
          mine.op);
    } else if (mine.out.defined()) {
      for (int i = 0; i < size(); ++i) {
        copy(mine.out, operation.calls[i].source(), piece_of(mine, i, rank));
      }
    }
  }

  void do_split(LocalOperation& operation) {
    std::map<int, std::vector<int>> workers;  // by color
    for (int i = 0; i < size(); ++i) {
      workers[operation.calls[i].color].push_back(workers_[i]);
    }
    operation.parts.resize(operation.calls.size());
    for (const auto& [color, members] : workers) {
      const auto group = world_->make_group(members);
      for (int i = 0, rank = 0; i < size(); ++i) {
        if (operation.calls[i].color == color) {
          operation.parts[i] = {group, rank++};
        }
      }
    }
  }

  const std::shared_ptr<LocalWorld> world_;
  const std::vector<int> workers_;  // ranks in the world
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<LocalOperation>> open_;
};

namespace {

// One worker's side of a group: its calls that are not complete yet.
class LocalMember {
 public:
  LocalMember(std::shared_ptr<LocalGroup> joined, int rank_in_group)
      : group(std::move(joined)), rank(rank_in_group) {}

  std::shared_ptr<LocalOperation> post(Call call) {
    open_.push_back(group->post(rank, next_++, std::move(call)));
    return open_.back();
  }

  // Completes calls in order, as every member does, so that no two members wait for each other in
  // different calls.
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

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<LocalGroup> group, int rank)
      : Communicator(rank, group->size()),
        member_(std::make_shared<LocalMember>(std::move(group), rank)) {}

  std::unique_ptr<Communicator> split(int color) override {
    const auto done = complete({.kind = Kind::Split, .color = color});
    const auto& [group, rank] = done->parts[this->rank()];
    return std::make_unique<LocalCommunicator>(group, rank);
  }

  void barrier() override {
    complete({.kind = Kind::Barrier});
  }

  void check_peers() override {
    member_->group->world().throw_if_happened();
  }

  Pending start(Call call) override {
    call.ready = device::Event::record(call.out.device());
    const auto operation = member_->post(std::move(call));
    return Pending(
        [member = member_, operation] { member->complete_up_to(*operation); },
        [member = member_](const std::exception_ptr& error) {
          member->group->world().abort(error);
        });
  }

 private:
  std::shared_ptr<LocalOperation> complete(Call call) {
    auto operation = member_->post(std::move(call));
    member_->complete_up_to(*operation);
    return operation;
  }

  std::shared_ptr<LocalMember> member_;
};

}  // namespace

void LocalWorld::abort(std::exception_ptr cause) noexcept {
  if (!set(std::move(cause))) {
    return;
  }
  std::vector<std::weak_ptr<LocalGroup>> groups;
  {
    const std::lock_guard lock(groups_mutex_);
    groups.swap(groups_);
  }
  for (const auto& weak : groups) {
    if (const auto group = weak.lock()) {
      group->wake();
    }
  }
}

std::shared_ptr<LocalGroup> LocalWorld::make_group(const std::vector<int>& workers) {
  const auto group = std::make_shared<LocalGroup>(shared_from_this(), workers);
  const std::lock_guard lock(groups_mutex_);
  std::erase_if(groups_, [](const auto& weak) { return weak.expired(); });
  groups_.push_back(group);
  return group;
}

std::vector<std::unique_ptr<Communicator>> LocalWorld::communicators(int workers) {
  ABT_CHECK(workers > 0, Config, "workers: expected at least 1, got {}", workers);
  std::vector<int> ranks(workers);
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto group = make_group(ranks);
  std::vector<std::unique_ptr<Communicator>> all;
  for (const int rank : ranks) {
    all.push_back(std::make_unique<LocalCommunicator>(group, rank));
  }
  return all;
}

}  // namespace abtrain::comm
