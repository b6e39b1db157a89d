#include "comm/mpi/world.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <exception>
#include <utility>

#include "base/error.h"
#include "comm/mpi/engine.h"

namespace abtrain::comm {

namespace {

using Engine = MpiWorld::Engine;

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<Engine> engine, std::shared_ptr<MpiGroup> group)
      : Communicator(group->rank, group->size()),
        engine_(std::move(engine)),
        group_(std::move(group)) {}

  std::unique_ptr<Communicator> split(int color, int key) override {
    const auto job = engine_->post(group_, {.kind = Call::Kind::Split, .color = color, .key = key});
    engine_->wait(*job);
    return std::make_unique<MpiCommunicator>(engine_, job->part);
  }

  void barrier() override {
    const at::Tensor all = at::zeros({size()}, at::kByte);
    engine_->wait(*engine_->post(
        group_, {.kind = Call::Kind::Barrier,
                 .out = all,
                 .in = at::zeros({1}, at::kByte),
                 .counts = std::vector<std::int64_t>(all.numel(), 1)}));
  }

  void check_peers() override {
    engine_->failure().throw_if_happened();
  }

  Pending start(Call call) override {
    // Buffers on a GPU are received elsewhere, and copied in the end.
    const at::Tensor result = call.out;
    if (result.is_cuda()) {
      const bool in_place = !call.in.defined();
      call.out = in_place ? result.cpu() : at::empty_like(result, at::kCPU);
      call.in = in_place ? at::Tensor() : call.in.cpu();
    }
    const auto job = engine_->post(group_, std::move(call));
    return Pending(
        [engine = engine_, job, result] {
          engine->wait(*job);
          if (result.is_cuda()) {
            const at::NoGradGuard no_grad;
            result.copy_(job->call.out);
          }
        },
        [engine = engine_](const std::exception_ptr& error) { engine->abort(error); });
  }

 private:
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<MpiGroup> group_;
};

}  // namespace

MpiWorld::MpiWorld(int rank, int size) : engine_(std::make_shared<Engine>(rank, size)) {
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

bool MpiWorld::is_fault_tolerant() const {
  return engine_->is_fault_tolerant();
}

std::vector<int> MpiWorld::regroup() {
  return engine_->regroup();
}

}  // namespace abtrain::comm
