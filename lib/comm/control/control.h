// What workers tell each other outside collectives: that all should stop, and
// at which step. Costs a step next to nothing and sends nothing until somebody
// asks for a stop.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace abtrain::comm {

class Control {
 public:
  virtual ~Control() = default;
  // Worker `worker` has done t steps and would begin the next. True: all
  // workers stop here, at the same t. Throws Error(PeerLost) where another has
  // failed.
  virtual bool stop_before(int worker, std::int64_t t) = 0;
};

// Workers that are threads of one process. `wanted` is asked at every step
// whether to stop (a signal came).
class LocalControl : public Control {
 public:
  LocalControl(int workers, std::function<bool()> wanted);
  bool stop_before(int worker, std::int64_t t) override;

 private:
  std::mutex mutex_;
  std::function<bool()> wanted_;
  std::vector<std::int64_t> begun_;  // steps that each worker has begun
  std::int64_t stop_at_ = -1;
};

}  // namespace abtrain::comm
