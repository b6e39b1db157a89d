// What workers tell each other outside of collectives: that all should stop,
// and at which step. It costs next to nothing per step and sends nothing until
// somebody asks for a stop.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace abtrain::comm {

class Control {
 public:
  virtual ~Control() = default;
  // Called when worker `worker` has done t steps and would begin the next one.
  // If it returns true, all workers stop here, at the same t. Throws
  // Error(PeerLost) when another worker has failed.
  virtual bool stop_before(int worker, std::int64_t t) = 0;
};

// For workers that are threads of one process. `wanted` is called at every step
// and returns true when the run should stop (after a signal).
class LocalControl : public Control {
 public:
  LocalControl(int workers, std::function<bool()> wanted);
  bool stop_before(int worker, std::int64_t t) override;

 private:
  std::mutex mutex_;
  std::function<bool()> wanted_;
  std::vector<std::int64_t> begun_;  // steps begun, by worker
  std::int64_t stop_at_ = -1;
};

}  // namespace abtrain::comm
