#include "comm/nccl/world.h"

#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDAGuard.h>
#include <nccl.h>

#include <algorithm>
#include <exception>
#include <map>

#include "base/error.h"
#include "comm/nccl/state.h"
#include "device/tensor_text.h"

namespace abtrain::comm {

namespace {

using Kind = Call::Kind;
using State = std::shared_ptr<NcclState>;
using Link = NcclState::Link;

// The whole collective in a group of one.
void copy_to_itself(const Call& call) {
  if (call.in.defined() && call.in.data_ptr() != call.out.data_ptr()) {
    const at::NoGradGuard no_grad;
    call.out.copy_(call.in);
  }
}

class NcclCommunicator : public Communicator {
 public:
  // No link: a group of one that NCCL knows nothing about.
  NcclCommunicator(State state, Link* link, int rank, int size)
      : Communicator(rank, size), state_(std::move(state)), link_(link) {}

  std::unique_ptr<Communicator> split(int color) override {
    state_->throw_if_happened();
    // NCCL takes colors from 0 up and need not know groups of one: gather what
    // all members chose and number the larger groups. Gathering also waits for
    // what was under way, as NCCL requires before a split.
    const std::vector<std::int64_t> chosen = gather_numbers(*this, {color});
    std::map<std::int64_t, int> sizes;
    for (const std::int64_t each : chosen) {
      ++sizes[each];
    }
    const auto part_rank =
        static_cast<int>(std::count(chosen.begin(), chosen.begin() + rank(), color));
    const int part_size = sizes.at(color);
    // If a world of one was joined to NCCL all the same, its splits are too.
    const int least = size() == 1 ? 1 : 2;
    int number = NcclState::kNoColor;
    int linked = 0;
    for (const auto& [other, members] : sizes) {
      if (members >= least) {
        number = other == color ? linked : number;
        ++linked;
      }
    }
    Link* part =
        link_ && linked > 0 ? state_->split(*link_, number, part_rank, part_size) : nullptr;
    return std::make_unique<NcclCommunicator>(state_, part, part_rank, part_size);
  }

  void barrier() override {
    state_->throw_if_happened();
    if (link_) {
      state_->wait(*state_->start(*link_, {.kind = Kind::Barrier}));
    }
  }

  void check_peers() override {
    state_->throw_if_happened();
  }

  Pending start(Call call) override {
    state_->throw_if_happened();
    if (!link_) {
      copy_to_itself(call);
      return {};
    }
    if (call.common_buffer().numel() == 0) {  // on every member
      return {};
    }
    if (call.out.is_cpu()) {
      stage(call);
      return {};
    }
    ABT_CHECK(
        call.out.device() == state_->device(), Config, "{}: this worker's GPU is {}",
        describe(call), state_->device());
    call.ready = device::Event::record(state_->device());
    // Where nobody waits because of an error there is nothing to do: the GPU
    // completes the collective without this thread, and its memory is kept.
    return Pending(
        [state = state_, operation = state_->start(*link_, std::move(call))] {
          state->order_after(*operation);
        },
        [state = state_](const std::exception_ptr& error) {
          if (!is_echo(error)) {
            state->abort(error);
          }
        });
  }

 private:
  // Through the GPU; the host waits.
  void stage(const Call& call) {
    const at::NoGradGuard no_grad;
    const c10::cuda::CUDAGuard guard(state_->device().index());
    Call moved{
        .kind = call.kind,
        .out = call.out.to(state_->device()),
        .op = call.op,
        .root = call.root,
        .counts = call.counts};
    if (call.in.defined()) {
      moved.in = call.in.to(state_->device());
    }
    const at::Tensor out = moved.out;
    moved.ready = device::Event::record(state_->device());
    const auto operation = state_->start(*link_, std::move(moved));
    state_->wait(*operation);
    call.out.copy_(out);
  }

  State state_;
  Link* link_;
};

std::string version_text(int code) {
  return formatted("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

void check_version(int loaded) {
  ABT_CHECK(
      loaded / 100 == NCCL_VERSION_CODE / 100, Config,
      "comm: nccl: this program was built for NCCL {}, but the library that it "
      "found is {} (see LD_LIBRARY_PATH)",
      version_text(NCCL_VERSION_CODE), version_text(loaded));
}

// What rank 0 gives to all. Version 0: rank 0 has failed.
struct Invitation {
  int version = 0;
  NcclState::Id id = {};
};

}  // namespace

int nccl_version() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

NcclVersions nccl_versions() {
  const int loaded = nccl_version();
  return {version_text(NCCL_VERSION_CODE), loaded > 0 ? version_text(loaded) : std::string()};
}

NcclWorld::NcclWorld(
    int rank, int size, at::Device device, double timeout_seconds, const ShareBytes& share,
    bool even_alone)
    : rank_(rank), size_(size), errors_(std::uncaught_exceptions()) {
  ABT_CHECK(rank >= 0 && rank < size, Config, "comm: nccl: rank {} of {}", rank, size);
  const bool joins = size > 1 || even_alone;
  Invitation invitation;
  std::exception_ptr error;
  try {
    check_version(nccl_version());
    state_ = std::make_shared<NcclState>(device, timeout_seconds);
    if (joins && rank == 0) {
      invitation = {nccl_version(), NcclState::make_id()};
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (joins) {
    try {
      share(&invitation, sizeof invitation);  // even on an error: others wait
    } catch (...) {
      error = error ? error : std::current_exception();
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
  if (joins) {
    ABT_CHECK(invitation.version != 0, PeerLost, "comm: nccl: worker 0 failed to start NCCL");
    ABT_CHECK(
        invitation.version / 100 == nccl_version() / 100, Config,
        "comm: nccl: worker 0 has NCCL {}, worker {} has {}", version_text(invitation.version),
        rank, version_text(nccl_version()));
    state_->join(invitation.id, rank, size);
  }
}

NcclWorld::~NcclWorld() {
  // Members that are unwinding from an error do not end together.
  state_->close(std::uncaught_exceptions() == errors_);
}

std::unique_ptr<Communicator> NcclWorld::communicator() {
  return std::make_unique<NcclCommunicator>(state_, state_->world(), rank_, size_);
}

void NcclWorld::abort(std::exception_ptr cause) noexcept {
  state_->abort(std::move(cause));
}

}  // namespace abtrain::comm
