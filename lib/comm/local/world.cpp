#include "comm/local/world.h"

#include <deque>
#include <exception>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "comm/local/group.h"

namespace abtrain::comm {

namespace {

using Kind = Call::Kind;

// One worker's side of a group: its calls that are not complete yet.
class Member {
 public:
  Member(std::shared_ptr<LocalGroup> joined, int rank_in_group)
      : group(std::move(joined)), rank(rank_in_group) {}

  std::shared_ptr<LocalOperation> post(Call call) {
    open_.push_back(group->post(rank, next_++, std::move(call)));
    return open_.back();
  }

  // In order, as on every member, so that no two members wait for each other.
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
        member_(std::make_shared<Member>(std::move(group), rank)) {}

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

  std::shared_ptr<Member> member_;
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
