#include "comm/mpi/world.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <exception>
#include <utility>

#include "base/error.h"
#include "comm/mpi/engine.h"

namespace abtrain::comm {

namespace {

using Engine = MpiWorld::Engine;

class MpiWork : public Pending::Work {
 public:
  // `device`: the tensor that the result is copied to, if it is received
  // elsewhere.
  MpiWork(
      std::shared_ptr<Engine> engine,
      std::shared_ptr<Engine::Job> job,
      at::Tensor device)
      : engine_(std::move(engine)),
        job_(std::move(job)),
        device_(std::move(device)),
        errors_(std::uncaught_exceptions()) {}

  void wait() override {
    waited_ = true;
    engine_->wait(*job_);
    if (device_.defined()) {
      const at::NoGradGuard no_grad;
      device_.copy_(job_->call.out);
    }
  }

  ~MpiWork() override {
    if (waited_) {
      return;
    }
    try {
      // A worker that is unwinding from an error does not wait for the others.
      ABT_CHECK(
          std::uncaught_exceptions() == errors_,
          PeerLost,
          "a worker left a collective because of an error");
      wait();
    } catch (...) {
      engine_->abort(std::current_exception());
    }
  }

 private:
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Engine::Job> job_;
  at::Tensor device_;
  int errors_;
  bool waited_ = false;
};

class MpiCommunicator : public CheckedCommunicator {
 public:
  MpiCommunicator(
      std::shared_ptr<Engine> engine,
      std::shared_ptr<MpiGroup> group)
      : engine_(std::move(engine)), group_(std::move(group)) {}

  int rank() const override {
    return group_->rank;
  }
  int size() const override {
    return group_->size();
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    const auto job = engine_->post(
        group_, {.kind = Call::Kind::Split, .color = color, .key = key});
    engine_->wait(*job);
    return std::make_unique<MpiCommunicator>(engine_, job->part);
  }

  void barrier() override {
    engine_->wait(*engine_->post(group_, {.kind = Call::Kind::Barrier}));
  }

  void check_peers() override {
    engine_->failure().throw_if_happened();
  }

 protected:
  Pending start(Call call) override {
    const at::Tensor result = call.out;
    at::Tensor device;
    if (result.is_cuda()) {
      device = result;
      const bool in_place = !call.in.defined();
      call.out = in_place ? result.cpu() : at::empty_like(result, at::kCPU);
      call.in = in_place ? at::Tensor() : call.in.cpu();
    }
    return Pending(std::make_unique<MpiWork>(
        engine_, engine_->post(group_, std::move(call)), std::move(device)));
  }

 private:
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<MpiGroup> group_;
};

}  // namespace

MpiWorld::MpiWorld(int rank, int size)
    : engine_(std::make_shared<Engine>(rank, size)) {
  Engine::start(engine_);
}

MpiWorld::~MpiWorld() {
  engine_->finish();
}

std::unique_ptr<Communicator> MpiWorld::communicator() {
  return std::make_unique<MpiCommunicator>(engine_, engine_->world());
}

void MpiWorld::set_timeout(double seconds) {
  engine_->set_timeout(seconds);
}

void MpiWorld::abort(std::exception_ptr cause) noexcept {
  engine_->abort(std::move(cause));
}

}  // namespace abtrain::comm
