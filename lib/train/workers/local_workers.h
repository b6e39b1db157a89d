// Workers that are threads of this process. They communicate through its
// memory, all on one device, or over NCCL, each on a GPU of its own.
#pragma once

#include <atomic>

#include "train/workers/worker_host.h"

namespace abtrain::train {

class LocalWorkers : public WorkerHost {
 public:
  explicit LocalWorkers(int workers) : workers_(workers) {}
  int first_rank() const override {
    return 0;
  }
  int workers_in_process() const override {
    return workers_;
  }
  int workers_on_machine() const override {
    return workers_;
  }
  at::Device find_device(device::DeviceChoice wanted, WorkerPlace& place)
      override;
  void all_or_none(const std::function<void()>& body) override {
    body();
  }
  std::string share(const std::string& text) override {
    return text;
  }
  void join_folder(const std::string&) override {}
  // Errors: as comm::run_workers().
  void run_workers(
      const config::RunOptions& options,
      BackEnd back_end,
      at::Device device,
      const Work& work) override;
  // Writes failure.json, unless the run was stopped.
  void record(const std::string& folder, const std::exception_ptr& error)
      override;

 private:
  int workers_;
  std::atomic<int> failed_ = -1;  // the first worker that had an error
};

}  // namespace abtrain::train
