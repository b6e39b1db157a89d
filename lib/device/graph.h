// CUDA graphs: work on a device that is recorded once and then launched as a whole any number of
// times, hundreds of kernels for the price of one launch.
//
// A capture runs the body and records what it queues on this thread's stream; nothing is executed
// until replay(). So the body must not depend on anything that the host decides anew each time: it
// reads and writes the same tensors and never makes the host wait. The next replay overwrites the
// tensors that the body creates. Run the body a few times before the capture: libraries choose
// their kernels and allocate their workspaces at first use, which a capture does not allow.
//
// On the CPU a graph keeps the body and runs it at each replay, which gives the same results.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <functional>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace abtrain::device {

// A lock that all workers on one device share. LibTorch's graphs on a device
// share its default generator and take no lock themselves, so captures, replays
// and destructions must not overlap. The lock is held only while the host
// queues work, and its holder never waits for another worker, so it cannot
// deadlock.
using CaptureTurn = std::mutex;

// Thrown when a capture fails. Nothing was captured, nothing was executed, and the device is as
// usable as before. But the generators must be seeded again.
class CaptureFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An empty graph, as the default constructor makes it, must not be replayed. When the last copy of
// a graph on a GPU is destroyed, it waits for the last replay and then releases the graph's memory.
class Graph {
 public:
  // `generators`: all generators that the body draws from. Each replay continues from the seed and
  // offset that the generators have at that time, as a call of the body would. On a GPU, this
  // thread must use a stream of its own (device/stream.h), and during the capture no other thread
  // may draw random numbers or capture on the device; the loaders' streams may keep running. `turn`
  // must outlive the graph. `before`, if given, is a graph that always ends before this graph
  // starts and that shares its memory with this graph. Neither body may read tensors that the other
  // body creates, and the next replay of `before` overwrites the tensors that this graph's body
  // creates. Throws CaptureFailed if the body throws or does what a capture does not allow.
  static Graph capture(
      c10::Device device, const std::function<void()>& body,
      const std::vector<at::Generator>& generators, CaptureTurn& turn, const Graph& before = {});

  explicit operator bool() const {
    return replay_ != nullptr;
  }
  // Queues the whole graph on this thread's stream; on the CPU, runs the body.
  void replay() {
    replay_();
  }

 private:
  std::function<void()> replay_;
  std::pair<unsigned long long, unsigned long long> memory_;  // id of LibTorch's memory pool
};

}  // namespace abtrain::device
