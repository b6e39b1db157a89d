// Messages among workers outside of collectives. They make all workers stop at the same step, tell
// worker 0 how each worker has spent its time, and pass bytes from worker 0 to all. No message
// waits until another worker finishes a step. A step without messages costs next to nothing.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::comm {

// How a worker has spent its time since its run began, in seconds. `train` = compute +
// communication + svd + data: the wall time of the training loop without evaluations and
// checkpoints.
struct Spent {
  double train = 0;
  double compute = 0;
  double communication = 0;  // in collectives, including waits for others
  double svd = 0;
  double data = 0;  // waiting for batches
  double evaluate = 0;
  double checkpoint = 0;

  bool operator==(const Spent&) const = default;
};

// The time that each worker had spent after the same number of steps, in rank order.
struct AllSpent {
  std::int64_t steps = 0;
  std::vector<Spent> workers;  // empty: not known yet
};

class Control {
 public:
  explicit Control(int workers = 1) : workers_(static_cast<std::size_t>(workers)) {}
  virtual ~Control() = default;
  // Called when worker `worker` has done t steps and is about to begin the next one. If it returns
  // true, all workers stop here, at the same t. Throws Error(PeerLost) when another worker has
  // failed.
  virtual bool stop_before(int worker, std::int64_t t) = 0;
  // Tells worker 0 how a worker has spent its time in its first `steps` steps. The workers post at
  // different times, but for the same values of `steps`. A value that some workers never post is
  // dropped. Thread-safe.
  virtual void post(int worker, std::int64_t steps, const Spent& spent);
  // Gives worker 0's bytes to all workers; all pass the same number of bytes. Collective; worker 0
  // does not wait for the others. LocalControl calls `check`, which may throw, while a worker
  // waits. ControlChannel throws Error(PeerLost) when another worker has failed. The base class,
  // for a single worker, does nothing.
  virtual void share(
      int /*worker*/, void* /*data*/, std::size_t /*bytes*/,
      const std::function<void()>& /*check*/) {}
  // The latest numbers that all workers have posted; known to worker 0 only.
  AllSpent spent() {
    const std::lock_guard lock(spent_mutex_);
    return latest_;
  }

 private:
  std::mutex spent_mutex_;
  std::size_t workers_;
  std::map<std::int64_t, std::vector<std::optional<Spent>>> rows_;  // by steps
  AllSpent latest_;
};

// For workers that are threads of one process. `wanted` is called at every step and returns true
// when the run should stop (after a signal).
class LocalControl : public Control {
 public:
  LocalControl(int workers, std::function<bool()> wanted);
  bool stop_before(int worker, std::int64_t t) override;
  void share(
      int worker, void* data, std::size_t bytes, const std::function<void()>& check) override;

 private:
  std::mutex mutex_;
  std::condition_variable shared_;
  std::vector<std::string> texts_;  // from worker 0, one per share()
  std::vector<std::size_t> taken_;  // number of texts that each worker has taken
  std::function<bool()> wanted_;
  std::vector<std::int64_t> begun_;  // steps begun, by worker
  std::int64_t stop_at_ = -1;
};

}  // namespace abtrain::comm
