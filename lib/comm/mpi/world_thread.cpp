// The thread that makes all MPI calls of a process (MpiWorld).
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "comm/mpi/library.h"
#include "comm/mpi/world.h"

namespace abtrain::comm {

namespace {

// Pause in seconds between two checks of transfers that make no progress. It grows with the time
// without progress, so that waiting workers leave the cores to workers that compute.
constexpr double kMinPause = 20e-6;
constexpr double kMaxPause = 1e-3;
// The longest pause while no transfer is open.
constexpr double kMaxIdlePause = 10e-3;
constexpr double kProbeSeconds = 1;  // without progress, before check_match()

// Describes `comm`; its `workers` are ranks in `world`.
std::shared_ptr<MpiGroup> make_group(const MpiTable& mpi, MpiHandle comm, MpiHandle world) {
  auto group = std::make_shared<MpiGroup>();
  group->comm = {&mpi, comm};
  int bound = 0;
  check_mpi(mpi, mpi.tag_bound(&bound), "MPI_Comm_get_attr");
  group->tags = MpiTags::below(bound);
  int size = 0;
  check_mpi(mpi, mpi.rank_and_size(comm, &group->rank, &size), "MPI_Comm_rank");
  group->workers.resize(static_cast<std::size_t>(size));
  check_mpi(
      mpi, mpi.workers(comm, world, size, group->workers.data()), "MPI_Group_translate_ranks");
  return group;
}

}  // namespace

void MpiWorld::run() {
  ::prctl(PR_SET_TIMERSLACK, 1000);  // ns; keeps short pauses short
  try {
    initialize();
    do {
      try {
        serve();
      } catch (...) {
        abort(std::current_exception());
      }
    } while (happened() && wait_for_regroup());
    // After a loss, Open MPI's MPI_Finalize sometimes waits forever.
    if (!happened() && left_.empty()) {
      for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
        mpi_->free_comm((*group)->comm.handle);
      }
      mpi_->finalize();
      const std::lock_guard lock(mutex_);
      finalized_ = true;
    }
  } catch (...) {
    abort(std::current_exception());
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void MpiWorld::initialize() {
  // With Open MPI's default, "put", two hosts send and receive in turns, and an exchange takes up
  // to 1.6 times as long as with "send". But "send" hangs over several links.
  if (std::getenv("OMPI_MCA_btl_tcp_links") == nullptr) {
    ::setenv("OMPI_MCA_btl_tcp_flags", "send", /*overwrite=*/0);
  }
  const MpiLibrary library = load_mpi(mpi_candidates());
  mpi_ = library.table;
  int threads = 0;
  check_mpi(*mpi_, mpi_->init(&threads), "MPI_Init_thread");
  ABT_CHECK(threads != 0, Config, "this MPI was built without thread support");
  std::string transport(static_cast<std::size_t>(mpi_->text_bytes), '\0');
  mpi_->transport(transport.data());
  MpiHandle own = nullptr;
  check_mpi(*mpi_, mpi_->copy_of_world(&own), "MPI_Comm_dup");
  groups_.push_back(make_group(*mpi_, own, own));
  if (groups_[0]->size() != size_ || groups_[0]->rank != rank_) {
    const std::string what = formatted(
        "{} sees process {} of {}, but the launcher started process {} of {}: "
        "start abtrain with this MPI's own mpirun, or under Slurm with srun "
        "--mpi=pmix",
        library.text(), groups_[0]->rank, groups_[0]->size(), rank_, size_);
    mpi_->free_comm(own);
    mpi_->finalize();
    throw Error(ErrorKind::Config, what);
  }
  int bound = 0;
  check_mpi(*mpi_, mpi_->tag_bound(&bound), "MPI_Comm_get_attr");
  const std::lock_guard lock(mutex_);
  about_ = formatted("{} over {}, tags up to {}", library.text(), transport.c_str(), bound);
  world_ = groups_[0];
  changed_.notify_all();
}

// Waits for regroup() after a failure. Returns false if the thread must end instead.
bool MpiWorld::wait_for_regroup() {
  {
    std::unique_lock lock(mutex_);
    posted_.wait(lock, [&] { return regroups_ || ending_; });
    if (!regroups_) {
      return false;
    }
  }
  shrink();
  const std::lock_guard lock(mutex_);
  if (!regroups_) {
    return false;  // regroup() has given up
  }
  clear();
  regroups_ = false;
  changed_.notify_all();
  return true;
}

void MpiWorld::shrink() {
  for (const auto& group : groups_) {
    mpi_->revoke(group->comm.handle);
  }
  abandoned_.insert(abandoned_.end(), open_.begin(), open_.end());
  open_.clear();
  MpiHandle left = nullptr;
  check_mpi(*mpi_, mpi_->shrink(world_->comm.handle, &left), "MPIX_Comm_shrink");
  const auto group = make_group(*mpi_, left, world_->comm.handle);
  left_ = group->workers;
  groups_ = {make_group(*mpi_, left, left)};
  const std::lock_guard lock(mutex_);
  inbox_.clear();
  world_ = groups_[0];
}

void MpiWorld::serve() {
  Stopwatch idle;
  bool moved = true;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const auto something = [&] { return !inbox_.empty() || ending_ || happened(); };
      if (!moved) {
        const double pause =
            std::clamp(idle.seconds() / 4, kMinPause, open_.empty() ? kMaxIdlePause : kMaxPause);
        posted_.wait_for(lock, std::chrono::duration<double>(pause), something);
      }
      if (happened() || (ending_ && inbox_.empty() && open_.empty())) {
        return;
      }
      while (!inbox_.empty()) {
        open_.push_back(std::move(inbox_.front()));
        inbox_.pop_front();
      }
    }
    moved = open_.empty() ? answer() : advance();
    if (moved) {
      idle.restart();
    }
  }
}

// Lets MPI progress while no job is open. A message that counts as sent may still be in this
// process (UCX and libfabric send it only within MPI calls), and another process may wait for it.
// Throws Error(PeerLost) if a worker is lost: the others may already wait for this one to regroup.
bool MpiWorld::answer() const {
  int there = 0;
  int tag = 0;
  mpi_->probe(world_->comm.handle, world_->rank, &there, &tag);
  if (mpi_->is_fault_tolerant() != 0) {
    check_mpi(*mpi_, mpi_->check(world_->comm.handle), "MPIX_Comm_get_failed");
  }
  return false;
}

// Whether a job may begin. All jobs before this one in open_ have begun.
bool MpiWorld::may_begin(const Job& job) const {
  if (job.call.kind == Call::Kind::Split) {  // blocks the thread, so all earlier jobs must be done
    return std::ranges::find(open_, false, &Job::done)->get() == &job;
  }
  const auto oldest = std::ranges::find_if(
      open_, [&](const auto& other) { return other->collective && other->group == job.group; });
  return job.call.ready.is_reached() &&
         (oldest == open_.end() ||
          job.group->calls - (*oldest)->collective->number() < MpiTags::kOpenCalls);
}

// Advances every open job once.
bool MpiWorld::advance() {
  bool moved = false;
  for (const auto& job : open_) {
    if (!job->collective) {
      if (!may_begin(*job)) {
        break;  // jobs begin in order, so no later one has begun
      }
      if (job->call.kind == Call::Kind::Split) {
        split(*job);
        finish_job(*job);
        moved = true;
        continue;
      }
      job->collective = std::make_unique<MpiCollective>(*job->group, job->call);
    }
    moved |= job->collective->advance();
    if (job->collective->done()) {
      finish_job(*job);
    } else if (job->collective->seconds_since_progress() > kProbeSeconds) {
      job->collective->check_match();
      if (job->collective->seconds_since_progress() > timeout_) {
        throw job->collective->overdue();
      }
    }
  }
  std::erase_if(open_, [](const auto& job) { return job->done; });
  return moved;
}

void MpiWorld::split(Job& job) {
  MpiHandle part = nullptr;
  check_mpi(*mpi_, mpi_->split(job.group->comm.handle, job.call.color, &part), "MPI_Comm_split");
  job.part = make_group(*mpi_, part, world_->comm.handle);
  groups_.push_back(job.part);
}

void MpiWorld::finish_job(Job& job) {
  const std::lock_guard lock(mutex_);
  job.collective.reset();
  job.done = true;
  changed_.notify_all();
}

}  // namespace abtrain::comm
