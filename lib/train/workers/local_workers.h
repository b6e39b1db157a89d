// Workers that are threads of this process. They communicate through its
// memory, all on one device, or over NCCL, each on a GPU of its own.
#pragma once

#include <atomic>

#include "train/workers/worker_host.h"

namespace abtrain::train {

class LocalWorkers : public WorkerHost {
 public:
  explicit LocalWorkers(int workers) : WorkerHost(0, workers, workers) {}
  at::Device find_device(device::DeviceChoice wanted, WorkerPlace& place) override;
  void join_folder(const std::string&) override {}
  std::vector<std::string> hosts() const override;
  // Errors: as comm::run_workers().
  void run_workers(
      const config::RunOptions& options, BackEnd back_end, at::Device device,
      const Work& work) override;
  std::string go_on_without_lost(BackEnd) override {
    return "the workers are threads of one process, which ends as a whole";
  }
  Loss regroup(const std::exception_ptr& end) override {
    std::rethrow_exception(end);
  }
  // Writes failure.json, unless the run was stopped.
  void record(const std::string& folder, const std::exception_ptr& error) override;

 private:
  std::vector<std::string> gather_text(const std::function<std::string()>& body) override {
    return {body()};
  }

  std::atomic<int> failed_ = -1;  // the first worker that had an error
};

}  // namespace abtrain::train
