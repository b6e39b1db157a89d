// How workers talk: the table of choices, and what is refused.
#include "train/back_end.h"

#include <gtest/gtest.h>

#include "error_of.h"

namespace abtrain::train {
namespace {

using Wanted = std::optional<BackEnd>;
constexpr std::nullopt_t kAuto = std::nullopt;

WorkerPlace threads(int workers) {
  return {.workers = workers, .has_nccl = true};
}

WorkerPlace threads_on_gpus(int workers, int gpus) {
  WorkerPlace place = threads(workers);
  place.on_gpu = true;
  place.gpus = gpus;
  return place;
}

WorkerPlace processes(int workers) {
  return {
      .workers = workers,
      .processes = true,
      .launcher = "Open MPI",
      .has_mpi = true,
      .has_nccl = true};
}

// `gpus`: of all hosts.
WorkerPlace processes_on_gpus(int workers, int gpus) {
  WorkerPlace place = processes(workers);
  place.on_gpu = true;
  place.gpus = gpus;
  return place;
}

WorkerPlace without_nccl(WorkerPlace place) {
  place.has_nccl = false;
  return place;
}

WorkerPlace without_mpi(WorkerPlace place) {
  place.has_mpi = false;
  place.launcher = "torchrun";
  return place;
}

// "local", "mpi: note", or "78: message" of an error.
std::string choice(Wanted comm, const WorkerPlace& place) {
  try {
    const BackEndChoice chosen = choose_back_end(comm, place);
    const char* name = chosen.back_end == BackEnd::Local ? "local"
                       : chosen.back_end == BackEnd::Mpi ? "mpi"
                                                         : "nccl";
    return chosen.note.empty() ? name : formatted("{}: {}", name, chosen.note);
  } catch (const Error& error) {
    return formatted("{}: {}", error.exit_code(), error.what());
  }
}

void expect_refused(Wanted comm, const WorkerPlace& place, const std::string& part) {
  const std::string got = choice(comm, place);
  EXPECT_TRUE(got.starts_with("78: ")) << got;
  expect_has(got, part);
}

TEST(BackEndOfThreads, Table) {
  EXPECT_EQ(choice(kAuto, threads(4)), "local");
  EXPECT_EQ(choice(BackEnd::Local, threads(4)), "local");
  for (const Wanted comm : {Wanted(), Wanted(BackEnd::Nccl)}) {
    EXPECT_EQ(choice(comm, threads_on_gpus(4, 4)), "nccl") << comm.has_value();
    EXPECT_EQ(choice(comm, threads_on_gpus(4, 8)), "nccl") << comm.has_value();
    EXPECT_EQ(choice(comm, threads_on_gpus(1, 1)), "local") << comm.has_value();
    EXPECT_EQ(
        choice(comm, threads_on_gpus(4, 1)),
        "local: 4 workers share 1 GPU, but NCCL needs one per worker: they "
        "communicate through the memory of their process (comm: local)");
    EXPECT_EQ(
        choice(comm, without_nccl(threads_on_gpus(4, 4))),
        "local: this build has no NCCL: workers communicate through the memory "
        "of their process (comm: local)");
  }
  EXPECT_EQ(choice(BackEnd::Local, threads_on_gpus(4, 4)), "local");
  EXPECT_EQ(choice(BackEnd::Local, threads_on_gpus(4, 1)), "local");
}

TEST(BackEndOfThreads, MayShareAGpuUnderNccl) {
  for (WorkerPlace place : {threads_on_gpus(4, 1), processes_on_gpus(4, 1)}) {
    place.nccl_shares_gpus = true;
    for (const Wanted comm : {Wanted(), Wanted(BackEnd::Nccl)}) {
      EXPECT_EQ(
          choice(comm, place),
          "nccl: 4 workers share 1 GPU under NCCL, because NCCL_MULTI_RANK_GPU_ENABLE is set: this "
          "is meant for tests, and steps are slow");
    }
    EXPECT_EQ(
        choice(place.processes ? BackEnd::Mpi : BackEnd::Local, place),
        place.processes ? "mpi" : "local");
  }
}

TEST(BackEndOfThreads, Refusals) {
  expect_refused(BackEnd::Mpi, threads(4), "`mpirun -np 4 abtrain ...`");
  expect_refused(BackEnd::Mpi, threads_on_gpus(4, 4), "needs one process per worker");
  expect_refused(BackEnd::Nccl, threads(4), "nccl needs GPUs");
  EXPECT_EQ(choice(BackEnd::Local, threads_on_gpus(128, 1)), "local");
  expect_refused(
      BackEnd::Local, threads_on_gpus(129, 1),
      "workers: at most 128 threads can communicate in the memory of a GPU, got 129");
  EXPECT_EQ(choice(BackEnd::Local, threads(129)), "local");
}

TEST(BackEndOfProcesses, Table) {
  EXPECT_EQ(choice(kAuto, processes(4)), "mpi");
  EXPECT_EQ(choice(BackEnd::Mpi, processes(4)), "mpi");
  for (const Wanted comm : {Wanted(), Wanted(BackEnd::Nccl)}) {
    EXPECT_EQ(choice(comm, processes_on_gpus(4, 4)), "nccl") << comm.has_value();
    EXPECT_EQ(choice(comm, without_mpi(processes_on_gpus(4, 4))), "nccl");
    EXPECT_EQ(
        choice(comm, processes_on_gpus(4, 2)),
        "mpi: 4 workers share 2 GPUs, but NCCL needs one per worker: they "
        "communicate through the hosts' memory (comm: mpi); workers=2 uses NCCL");
    EXPECT_EQ(
        choice(comm, without_nccl(processes_on_gpus(4, 4))),
        "mpi: this build has no NCCL: workers communicate through the hosts' "
        "memory (comm: mpi)");
  }
  EXPECT_EQ(choice(BackEnd::Mpi, processes_on_gpus(4, 4)), "mpi");
  EXPECT_EQ(choice(BackEnd::Mpi, processes_on_gpus(4, 2)), "mpi");
}

TEST(BackEndOfProcesses, Refusals) {
  for (const WorkerPlace& place : {processes(4), processes_on_gpus(4, 4)}) {
    expect_refused(BackEnd::Local, place, "Open MPI started 4 processes");
  }
  expect_refused(BackEnd::Nccl, processes(4), "nccl needs GPUs");
  const std::string how =
      ": start them with `mpirun -np 4` of Open MPI or MPICH (Debian: "
      "openmpi-bin) or with `srun --mpi=pmix`";
  const std::string nothing = "torchrun started 4 processes, but without MPI, which is needed by ";
  expect_refused(kAuto, without_mpi(processes(4)), nothing + "workers on CPUs" + how);
  expect_refused(BackEnd::Mpi, without_mpi(processes_on_gpus(4, 4)), nothing + "comm: mpi" + how);
  expect_refused(
      kAuto, without_mpi(processes_on_gpus(4, 2)), nothing + "workers that share a GPU" + how);
  expect_refused(
      kAuto, without_mpi(without_nccl(processes_on_gpus(4, 4))),
      nothing + "workers on GPUs without NCCL in this build" + how);
}

}  // namespace
}  // namespace abtrain::train
