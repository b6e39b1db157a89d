#include "comm/nccl/world.h"

#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDAGuard.h>
#include <nccl.h>

#include <algorithm>
#include <exception>
#include <map>

#include "base/env.h"
#include "base/error.h"
#include "device/tensor_text.h"

namespace abtrain::comm {

namespace {

using Kind = Call::Kind;
using Link = NcclWorld::Link;

// Performs a collective in a group of one.
void copy_to_itself(const Call& call) {
  if (call.in.defined() && call.in.data_ptr() != call.out.data_ptr()) {
    const at::NoGradGuard no_grad;
    call.out.copy_(call.in);
  }
}

class NcclCommunicator : public Communicator {
 public:
  // A null `link`: a group of one, which does not use NCCL.
  NcclCommunicator(std::shared_ptr<NcclWorld> world, Link* link, int rank, int size)
      : Communicator(rank, size), world_(std::move(world)), link_(link) {}

  std::unique_ptr<Communicator> split(int color) override {
    world_->throw_if_happened();
    // NCCL's colors start at 0, and groups of one do not use NCCL. So gather the colors of all
    // members and number the larger groups. Gathering also waits for operations under way, as NCCL
    // requires before a split.
    const std::vector<int> chosen = gather_values(*this, color);
    std::map<int, int> sizes;
    for (const int each : chosen) {
      ++sizes[each];
    }
    const auto part_rank =
        static_cast<int>(std::count(chosen.begin(), chosen.begin() + rank(), color));
    const int part_size = sizes.at(color);
    // A world of one that uses NCCL (`even_alone`) also splits by NCCL.
    const int least = size() == 1 ? 1 : 2;
    int number = NcclWorld::kNoColor;
    int linked = 0;
    for (const auto& [other, members] : sizes) {
      if (members >= least) {
        number = other == color ? linked : number;
        ++linked;
      }
    }
    Link* part =
        link_ && linked > 0 ? world_->split(*link_, number, part_rank, part_size) : nullptr;
    return std::make_unique<NcclCommunicator>(world_, part, part_rank, part_size);
  }

  void barrier() override {
    world_->throw_if_happened();
    if (link_) {
      world_->wait(*world_->queue(*link_, {.kind = Kind::Barrier}));
    }
  }

  void check_peers() override {
    world_->throw_if_happened();
  }

  Pending start(Call call) override {
    world_->throw_if_happened();
    if (!link_) {
      copy_to_itself(call);
      return {};
    }
    if (call.common_buffer().numel() == 0) {  // true on every member or on none
      return {};
    }
    if (call.out.is_cpu()) {
      stage(call);
      return {};
    }
    ABT_CHECK(
        call.out.device() == world_->device(), Config, "{}: this worker's GPU is {}",
        describe(call), world_->device());
    call.ready = device::Event::record(world_->device());
    // A caller that unwinds from an error does not wait (`error` is then an echo), and nothing is
    // left to do: the GPU completes the collective by itself, and its memory is kept.
    return Pending(
        [world = world_, operation = world_->queue(*link_, std::move(call))] {
          world->order_after(*operation);
        },
        [world = world_](const std::exception_ptr& error) {
          if (!is_echo(error)) {
            world->abort(error);
          }
        });
  }

 private:
  // Copies the buffers to the GPU and the result back; the host waits.
  void stage(const Call& call) {
    const at::NoGradGuard no_grad;
    const c10::cuda::CUDAGuard guard(world_->device().index());
    const at::Device gpu = world_->device();
    Call moved{
        .kind = call.kind,
        .out = call.out.to(gpu),
        .in = call.in.defined() ? call.in.to(gpu) : at::Tensor(),
        .op = call.op,
        .root = call.root,
        .counts = call.counts,
        .ready = device::Event::record(gpu)};  // after the copies
    const at::Tensor out = moved.out;
    const auto operation = world_->queue(*link_, std::move(moved));
    world_->wait(*operation);
    call.out.copy_(out);
  }

  std::shared_ptr<NcclWorld> world_;
  Link* link_;
};

std::string version_text(int code) {
  return formatted("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

bool is_new_enough(int loaded) {
  return loaded / 10000 == NCCL_VERSION_CODE / 10000 && loaded / 100 >= NCCL_VERSION_CODE / 100;
}

void check_version(int loaded) {
  ABT_CHECK(
      is_new_enough(loaded), Config,
      "comm: nccl: this program was built for NCCL {} and works with newer libraries of that major "
      "version, but it found NCCL {} (see LD_LIBRARY_PATH)",
      version_text(NCCL_VERSION_CODE), version_text(loaded));
}

// Rank 0 shares this with all ranks. Version 0 means that rank 0 has failed.
struct Invitation {
  int version = 0;
  NcclWorld::Id id = {};
};

}  // namespace

int nccl_version() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

bool nccl_shares_gpus() {
  constexpr int kFirst = 23003;
  return nccl_version() >= kFirst && env("NCCL_MULTI_RANK_GPU_ENABLE") == "1";
}

NcclVersions nccl_versions() {
  const int loaded = nccl_version();
  return {
      version_text(NCCL_VERSION_CODE), loaded > 0 ? version_text(loaded) : std::string(),
      is_new_enough(loaded)};
}

std::shared_ptr<NcclWorld> NcclWorld::start(
    int rank, int size, at::Device device, double timeout_seconds, const ShareBytes& share,
    bool even_alone) {
  const bool joins = size > 1 || even_alone;
  Invitation invitation;
  std::shared_ptr<NcclWorld> world;
  std::exception_ptr error;
  try {
    check_version(nccl_version());
    world.reset(new NcclWorld(rank, size, device, timeout_seconds));
    if (joins && rank == 0) {
      invitation = {nccl_version(), make_id()};
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (joins) {
    try {
      share(&invitation, sizeof invitation);  // even after an error, since others wait for it
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
    world->join(invitation.id);
  }
  // The communicators hold references too. So the caller's pointer has its own deleter, which
  // closes the world when the caller's last copy goes: together with the other members, unless an
  // error is being thrown.
  return {world.get(), [world, errors = std::uncaught_exceptions()](NcclWorld*) {
            world->close(std::uncaught_exceptions() == errors);
          }};
}

std::unique_ptr<Communicator> NcclWorld::communicator() {
  Link* all = links_.empty() ? nullptr : links_.front().get();
  return std::make_unique<NcclCommunicator>(shared_from_this(), all, rank_, size_);
}

}  // namespace abtrain::comm
