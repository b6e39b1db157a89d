// Detects other programs that take cores from a run, which makes its times unreliable.
//
// While a worker computes without waiting, the CPU time of its thread equals the wall time, unless
// the thread lacks a core. The run itself can cause this lack, by more workers than cores or by
// threads that prepare batches. But then its processes keep all cores busy; if other programs take
// cores, they do not.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace abtrain::train {

// Times of a worker, summed over the parts of its steps in which it computes.
struct CoreTime {
  double wall = 0, thread = 0, process = 0;  // seconds; CPU times of thread and process
  double cores = 0;                          // number of cores that the process may use
  double first_core = 0;                     // index of the first; equal if processes share cores
};

// Measures the time of the calling thread from begin() to end().
class CoreWatch {
 public:
  // Without `measures`, it does nothing: used on a GPU, where the thread waits for the device.
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
  double share = 1;    // fraction of their compute time in which the workers had a core
  double implied = 1;  // the fraction expected if all of them compute at once
  double own = 0;      // fraction of the cores that the run's processes kept busy meanwhile
  double seconds = 0;  // compute time of a worker, mean
  std::string host;    // "" if there is only one

  // True if other programs took more than a tenth of the workers' compute time. False for short
  // measurements, which may be no longer than one time slice of another program.
  bool beside_others() const;
  // "workers had a core for 27 % of their compute time: other programs run on this machine, ..."
  std::string warning() const;
};

// Core use on the host where the workers lacked cores most; nullopt if nothing was measured.
// `times` and `hosts`: of all workers, in rank order; without hosts, all workers are on this host.
// `threads`: per worker. `in_process`: number of workers that are threads of one process.
std::optional<CoreUse> core_use(
    const std::vector<CoreTime>& times, const std::vector<std::string>& hosts, int threads,
    int in_process);

}  // namespace abtrain::train
