// Whether other programs take cores from a run, so that its times are not reliable.
//
// While a worker computes and waits for nobody, the CPU time of its thread is its wall time, unless
// the thread lacks a core. A run can cause that itself, by more workers than cores or by threads
// that prepare batches. Then its processes keep all cores busy; beside other programs they do not.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace abtrain::train {

// A worker's times, over the parts of its steps in which it computes.
struct CoreTime {
  double wall = 0, thread = 0, process = 0;  // seconds; CPU time of its thread and of its process
  double cores = 0;                          // that the process may use
  double first_core = 0;  // of these; processes of a host with the same first core share all
};

// Measures such stretches, of the thread that calls it.
class CoreWatch {
 public:
  // Without `measures`, it does nothing: on a GPU, the thread waits for the device.
  explicit CoreWatch(bool measures);
  void begin();
  void end();
  const CoreTime& time() const {
    return time_;
  }

 private:
  bool measures_;
  CoreTime begun_;
  CoreTime time_;
};

struct CoreUse {
  double share = 1;    // part of their compute time in which the workers had a core
  double implied = 1;  // the part that they have if all of them compute at once
  double own = 0;      // part of the cores that the run's processes kept busy meanwhile
  double seconds = 0;  // that a worker computed; mean
  std::string host;    // "" if there is only one

  // Whether other programs took more than a tenth. Of a moment nothing can be said: one time slice
  // of another program may be as long.
  bool beside_others() const;
  // "workers had a core for 27 % of their compute time: other programs run on this machine, ..."
  std::string warning() const;
};

// The use of cores on the host where the workers lacked them most; nothing if nothing was measured.
// `times` and `hosts` are those of all workers, in rank order; without hosts, all workers are on
// this one. `threads`: per worker. `in_process`: workers that are threads of one process.
std::optional<CoreUse> core_use(
    const std::vector<CoreTime>& times, const std::vector<std::string>& hosts, int threads,
    int in_process);

}  // namespace abtrain::train
