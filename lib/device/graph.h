// Work on a device that is queued once and launched again as a whole: hundreds
// of kernels for the price of one launch.
//
// A capture runs the body and records what it queues on this thread's stream;
// nothing is executed until replay(). So the body may depend on nothing that
// the host decides anew: it reads and writes the same tensors each time, makes
// the host wait for nothing, and what it leaves in new tensors is overwritten
// by the next replay. Run it a few times before: libraries choose their kernels
// and take their workspaces at first use, which a capture does not allow.
//
// On the CPU a graph keeps the body and runs it at each replay: the same bits,
// so that whatever is captured can be tested there.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace abtrain::device {

// One for all workers that share a device. LibTorch's graphs of a device share
// its default generator and take no lock of their own: captures, replays and
// ends come one after another. It is held for no longer than the host needs to
// queue, and nobody waits for another worker meanwhile: no deadlock.
class CaptureTurn {
 public:
  [[nodiscard]] std::unique_lock<std::mutex> take() {
    return std::unique_lock(mutex_);
  }

 private:
  std::mutex mutex_;
};

// Nothing was captured, nothing was executed, and the device is as usable as
// before. Seed the generators again.
class CaptureFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Graph {
 public:
  Graph() = default;  // of nothing
  // `generators`: all that the body draws from. Each replay goes on from the
  // seed and offset that they have then, as the body itself would. On a GPU
  // this thread's stream is one of its own (device/stream.h), and while the
  // capture lasts no other thread draws numbers or captures on the device; the
  // loaders' own streams may go on. `turn` outlives the graph.
  // Throws CaptureFailed where the body throws or does what is not allowed.
  static Graph capture(
      c10::Device device,
      const std::function<void()>& body,
      const std::vector<at::Generator>& generators,
      CaptureTurn& turn);

  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;
  // Waits on a GPU for the last replay, then gives the graph's memory back.
  ~Graph() = default;

  explicit operator bool() const {
    return form_ != nullptr;
  }
  // Queues it all on this thread's stream (on the CPU: does it).
  void replay() {
    form_->replay();
  }

  class Form {
   public:
    virtual ~Form() = default;
    virtual void replay() = 0;
  };

 private:
  static std::unique_ptr<Form> capture_cuda(
      c10::Device device,
      const std::function<void()>& body,
      const std::vector<at::Generator>& generators,
      CaptureTurn& turn);

  std::unique_ptr<Form> form_;
};

}  // namespace abtrain::device
