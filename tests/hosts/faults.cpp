// Faults on request, in the test build of the program only:
//   ABTRAIN_FAULT=rank=1,step=40,kind=crash|hang|nan|slow|corrupt-checkpoint|disk-full
// crash, hang and nan come before that step; slow delays it and all later ones by
// 20 ms; the other two hit the first save after it.
#include <ATen/core/grad_mode.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include "base/env.h"
#include "base/error.h"
#include "base/scalars.h"
#include "hooks.h"
#include "run_folder/checkpoint_files.h"

namespace abtrain::app {

namespace {

struct Fault {
  std::int64_t rank = 0;
  std::int64_t step = 0;
  std::string kind;
};

Fault read_fault(const std::string& text) {
  Fault fault;
  for (const std::string& part : split_text(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const std::string value = part.substr(equals + 1);
    std::string why;
    const bool known = key == "kind"
                           ? !(fault.kind = value).empty()
                           : parse_integer(value, key == "rank" ? fault.rank : fault.step, why) &&
                                 (key == "rank" || key == "step");
    ABT_CHECK(known, Usage, "ABTRAIN_FAULT: '{}'", part);
  }
  return fault;
}

// Files may grow to this size: a write beyond it fails as on a full disk.
void limit_files(rlim_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

void flip_a_byte(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get());
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(~last));
}

}  // namespace

train::TrainHooks train_hooks() {
  const auto text = env("ABTRAIN_FAULT");
  if (!text) {
    return {};
  }
  const Fault fault = read_fault(*text);
  const auto due = std::make_shared<std::atomic<bool>>(false);
  train::TrainHooks hooks;
  hooks.slow_window = 0.2;
  hooks.before_step = [=](int rank, std::int64_t step, nn::Model& model) {
    if (fault.kind == "disk-full") {
      limit_files(RLIM_INFINITY);
    }
    if (fault.kind == "slow" && rank == fault.rank && step >= fault.step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (rank != fault.rank || step != fault.step) {
      return;
    }
    *due = true;
    if (fault.kind == "crash") {
      ::kill(::getpid(), SIGKILL);
    } else if (fault.kind == "hang") {
      std::this_thread::sleep_for(std::chrono::hours(1));
    } else if (fault.kind == "nan") {
      const at::NoGradGuard no_grad;
      model.parameters().front().tensor->fill_(std::numeric_limits<float>::quiet_NaN());
    }
  };
  hooks.save = [=](int rank, const char* moment, const std::string& folder) {
    if (rank != fault.rank || !*due) {
      return;
    }
    if (fault.kind == "disk-full" && std::strcmp(moment, "write") == 0) {
      limit_files(8192);
      *due = false;
    } else if (fault.kind == "corrupt-checkpoint" && std::strcmp(moment, "saved") == 0) {
      flip_a_byte(folder + "/" + run_folder::worker_file(rank));
      *due = false;
    }
  };
  return hooks;
}

}  // namespace abtrain::app
