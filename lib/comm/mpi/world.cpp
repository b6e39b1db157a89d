#include "comm/mpi/world.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "base/error.h"
#include "device/side_stream.h"

namespace abtrain::comm {

namespace {

constexpr double kForever = 1e8;  // seconds; more would overflow the clock
// Extra time for regroup(): more than the other workers need to notice a loss.
constexpr double kRegroupSeconds = 5;
// Limit for MPI_Finalize, which waits for all processes, even for one that has died after its last
// collective.
constexpr std::chrono::seconds kFinalize{30};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<MpiWorld> world, std::shared_ptr<MpiGroup> group)
      : Communicator(group->rank, group->size()),
        world_(std::move(world)),
        group_(std::move(group)) {}

  std::unique_ptr<Communicator> split(int color) override {
    const auto job = world_->post(group_, {.kind = Call::Kind::Split, .color = color});
    world_->wait(*job);
    return std::make_unique<MpiCommunicator>(world_, job->part);
  }

  void barrier() override {
    const at::Tensor all = at::zeros({size()}, at::kByte);
    world_->wait(*world_->post(
        group_, {.kind = Call::Kind::Barrier,
                 .out = all,
                 .in = at::zeros({1}, at::kByte),
                 .counts = std::vector<std::int64_t>(all.numel(), 1)}));
  }

  void check_peers() override {
    world_->throw_if_happened();
  }

  Pending start(Call call) override {
    const at::Tensor result = call.out;
    if (result.is_cuda()) {
      move_to_host(call);
    }
    const auto job = world_->post(group_, std::move(call));
    return Pending(
        [world = world_, job, result] {
          world->wait(*job);
          if (result.is_cuda()) {
            const at::NoGradGuard no_grad;
            result.copy_(job->call.out, /*non_blocking=*/true);
          }
        },
        [world = world_](const std::exception_ptr& error) { world->abort(error); });
  }

 private:
  // GPU buffers are sent and received as copies in page-locked memory. The host does not wait here:
  // the world's thread starts the transfer once the copy has arrived.
  void move_to_host(Call& call) {
    const auto on_host = [](const at::Tensor& like) {
      return at::empty_like(like, like.options().device(at::kCPU).pinned_memory(true));
    };
    const at::Tensor from = call.source();
    const at::Tensor copy = on_host(from);
    if (!copies_) {
      copies_.emplace(from.device());
    }
    call.ready = copies_->start([&] {
      const at::NoGradGuard no_grad;
      device::keep_for_current_stream(from);
      at::Tensor(copy).copy_(from, /*non_blocking=*/true);
    });
    call.out = call.in.defined() ? on_host(call.out) : copy;
    call.in = call.in.defined() ? copy : at::Tensor();
  }

  std::shared_ptr<MpiWorld> world_;
  std::shared_ptr<MpiGroup> group_;
  std::optional<device::SideStream> copies_;
};

}  // namespace

std::shared_ptr<MpiWorld> MpiWorld::start(int rank, int size, double seconds) {
  const std::shared_ptr<MpiWorld> world(new MpiWorld(rank, size, seconds));
  world->thread_ = std::thread([world] { world->run(); });
  std::unique_lock lock(world->mutex_);
  if (!world->changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
        return world->world_ || world->happened();
      })) {
    world->thread_.detach();
    throw Error(
        ErrorKind::PeerLost,
        formatted(
            "MPI_Init did not return within {} s on process {} of {}: a process has ended or was "
            "stopped before it came there, or the processes do not reach each other",
            seconds, rank, size));
  }
  if (world->happened()) {
    lock.unlock();
    world->thread_.join();
    std::rethrow_exception(world->cause());
  }
  // The thread and the communicators hold references too. So the caller's pointer has its own
  // deleter, which ends the world when the caller's last copy goes.
  return {world.get(), [world](MpiWorld*) { world->finish(); }};
}

std::unique_ptr<Communicator> MpiWorld::communicator() {
  return std::make_unique<MpiCommunicator>(shared_from_this(), world_);
}

bool MpiWorld::finish() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  posted_.notify_all();
  changed_.wait_for(lock, kFinalize, [&] { return ended_ || happened(); });
  const bool is_stuck = happened() || !ended_;
  lock.unlock();
  if (thread_.joinable()) {
    is_stuck ? thread_.detach() : thread_.join();  // MPI may never return
  }
  return !is_stuck && finalized_;
}

std::shared_ptr<MpiWorld::Job> MpiWorld::post(std::shared_ptr<MpiGroup> group, Call call) {
  throw_if_happened();
  auto job = std::make_shared<Job>(std::move(group), std::move(call));
  const std::lock_guard lock(mutex_);
  inbox_.push_back(job);
  posted_.notify_one();
  return job;
}

void MpiWorld::wait(const Job& job) {
  std::unique_lock lock(mutex_);
  // A split is a blocking MPI call, which the thread cannot time.
  const double seconds = job.call.kind == Call::Kind::Split ? timeout_.load() : kForever;
  const auto came = [&] { return job.done || happened(); };
  const bool in_time = changed_.wait_for(lock, std::chrono::duration<double>(seconds), came);
  if (job.done) {
    return;
  }
  lock.unlock();
  if (!in_time) {
    abort(std::make_exception_ptr(TimedOut(describe(job.call), timeout_, {})));
  }
  // Rethrown as it is: calling different collectives is each worker's own error, not an echo.
  std::rethrow_exception(cause());
}

void MpiWorld::abort(std::exception_ptr cause) noexcept {
  set(std::move(cause));
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
  posted_.notify_all();
}

std::vector<int> MpiWorld::regroup() {
  abort(std::make_exception_ptr(Error(ErrorKind::PeerLost, "another worker is lost")));
  std::unique_lock lock(mutex_);
  regroups_ = !ending_;
  posted_.notify_all();
  const bool done = !ending_ && changed_.wait_for(
                                    lock, std::chrono::duration<double>(timeout_ + kRegroupSeconds),
                                    [&] { return !regroups_ || ended_; });
  if (!done) {
    // The others may have continued without this process, so a new world that is ready later would
    // be useless.
    regroups_ = false;
    ending_ = true;
    throw Error(
        ErrorKind::PeerLost,
        formatted(
            "the workers that are left did not find each other within train.timeout ({} s)",
            timeout_.load()));
  }
  if (regroups_) {  // the thread has ended with an error
    lock.unlock();
    std::rethrow_exception(cause());
  }
  return left_;
}

}  // namespace abtrain::comm
