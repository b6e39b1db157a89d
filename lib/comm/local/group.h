// What the members of a group share: the collectives under way and the points
// where the members meet. Internal to the local back end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/local/world.h"

namespace abtrain::comm {

// A collective under way. Everything is guarded by the group's mutex until
// `posted` is set; from then on the calls do not change.
struct LocalOperation {
  LocalOperation(std::uint64_t number, int size)
      : sequence(number), calls(size), came(size), ended(size) {}

  const std::uint64_t sequence;  // the same on every member
  std::vector<Call> calls;
  std::vector<bool> came;   // members that have posted
  std::vector<bool> ended;  // members that have done their share
  int at_work = 0;  // members now touching the buffers
  std::atomic<bool> posted = false;
  std::atomic<bool> done = false;
  std::string mismatch;
  device::Event result;
  // For a split: each member's new group and its rank there.
  std::vector<std::pair<std::shared_ptr<LocalGroup>, int>> parts;
};

class LocalGroup {
 public:
  LocalGroup(std::shared_ptr<LocalWorld> world, std::vector<int> workers);

  int size() const {
    return static_cast<int>(workers_.size());
  }
  LocalWorld& world() {
    return *world_;
  }
  // Posts the member's call number `sequence` (from 0). Returns at once.
  std::shared_ptr<LocalOperation> post(int rank, std::uint64_t sequence, Call call);
  // Does this member's share and returns when all have done theirs.
  void complete(LocalOperation& operation, int rank);
  void wake();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void begin(LocalOperation& operation);
  void meet(
      Lock& lock, const LocalOperation& operation, const std::atomic<bool>& flag,
      const std::vector<bool>& members);
  std::string compare(const LocalOperation& operation) const;
  void do_all(LocalOperation& operation);
  void do_share(const LocalOperation& operation, int rank) const;
  void do_split(LocalOperation& operation);

  const std::shared_ptr<LocalWorld> world_;
  const std::vector<int> workers_;  // ranks in the world
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::shared_ptr<LocalOperation>> open_;
};

}  // namespace abtrain::comm
