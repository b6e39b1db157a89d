#include "train/back_end.h"

#include "base/error.h"
#include "ops/reduce_buffers.h"

namespace abtrain::train {

namespace {

std::string shared_gpus(const WorkerPlace& place, const std::string& way) {
  return place.has_nccl ? formatted(
                              "{} workers share {}{}, but NCCL needs one per worker: they "
                              "communicate {}{}",
                              place.workers, place.gpus, place.gpus == 1 ? " GPU" : " GPUs", way,
                              place.gpus > 1 ? formatted("; workers={} uses NCCL", place.gpus) : "")
                        : formatted("this build has no NCCL: workers communicate {}", way);
}

const char* who_needs_mpi(const std::optional<BackEnd>& wanted, const WorkerPlace& place) {
  return wanted == BackEnd::Mpi ? "comm: mpi"
         : !place.on_gpu        ? "workers on CPUs"
         : place.has_nccl       ? "workers that share a GPU"
                                : "workers on GPUs without NCCL in this build";
}

}  // namespace

BackEndChoice choose_back_end(const std::optional<BackEnd>& wanted, const WorkerPlace& place) {
  ABT_CHECK(
      place.processes || wanted != BackEnd::Mpi, Config,
      "comm: mpi needs one process per worker: `mpirun -np {} abtrain ...` or "
      "`srun --mpi=pmix`; workers that are threads of one process communicate "
      "through its memory (local)",
      place.workers);
  ABT_CHECK(
      !place.processes || wanted != BackEnd::Local, Config,
      "comm: local is for workers that are threads of one process, but {} "
      "started {} processes",
      place.launcher, place.workers);
  ABT_CHECK(
      wanted != BackEnd::Nccl || place.on_gpu, Config,
      "comm: nccl needs GPUs, but the workers are on the CPU");
  const bool wants_memory = !place.processes && (place.workers == 1 || wanted == BackEnd::Local);
  const bool could_use_nccl = place.on_gpu && wanted != BackEnd::Mpi && !wants_memory;
  if (could_use_nccl && place.has_nccl && place.gpus >= place.workers) {
    return {BackEnd::Nccl, ""};
  }
  if (could_use_nccl && place.nccl_shares_gpus) {
    return {
        BackEnd::Nccl,
        formatted(
            "{} workers share {}{} under NCCL, because NCCL_MULTI_RANK_GPU_ENABLE is set: this is "
            "meant for tests, and steps are slow",
            place.workers, place.gpus, place.gpus == 1 ? " GPU" : " GPUs")};
  }
  if (!place.processes) {
    ABT_CHECK(
        !place.on_gpu || place.workers <= kernels::kMaxBuffers, Config,
        "workers: at most {} threads can communicate in the memory of a GPU, got {}",
        kernels::kMaxBuffers, place.workers);
    return {
        BackEnd::Local,
        could_use_nccl ? shared_gpus(place, "through the memory of their process (comm: local)")
                       : ""};
  }
  ABT_CHECK(
      place.has_mpi, Config,
      "{} started {} processes, but without MPI, which is needed by {}: start "
      "them with `mpirun -np {}` of Open MPI or MPICH (Debian: openmpi-bin) or "
      "with `srun --mpi=pmix`, or start one process, whose threads they are",
      place.launcher, place.workers, who_needs_mpi(wanted, place), place.workers);
  return {
      BackEnd::Mpi,
      could_use_nccl ? shared_gpus(place, "through the hosts' memory (comm: mpi)") : ""};
}

}  // namespace abtrain::train
