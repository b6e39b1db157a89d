// The NCCL communicators of an NcclWorld, its stream, and the thread that watches over them.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "comm/nccl/calls.h"
#include "comm/nccl/world.h"
#include "device/cuda/torch_versions.h"
#include "device/tensor_text.h"

namespace abtrain::comm {

namespace {

// Interval between two checks of the watching thread.
constexpr std::chrono::milliseconds kLook{20};

// Pauses between two checks for an event that usually comes within microseconds.
class Pause {
 public:
  void operator()() {
    if (++looks_ < 100) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min(length_, kMaxPause));
      length_ += length_ / 4;
    }
  }

 private:
  static constexpr std::chrono::microseconds kMaxPause{1000};
  int looks_ = 0;
  std::chrono::microseconds length_{20};
};

at::Device with_index(at::Device device) {
  ABT_CHECK(device.is_cuda(), Config, "comm: nccl: expected a CUDA device, got {}", device);
  return device.has_index() ? device : at::Device(at::kCUDA, c10::cuda::current_device());
}

bool good(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

std::string text_of(ncclResult_t result) {
  std::string detail = ncclGetLastError(nullptr);
  detail.erase(detail.find_last_not_of('\n') + 1);
  return formatted(
      "{}{}{}{}", ncclGetErrorString(result), detail.empty() ? "" : " (", detail,
      detail.empty() ? "" : ")");
}

ErrorKind kind_of(ncclResult_t result) {
  const bool refused = result == ncclInvalidArgument || result == ncclInvalidUsage;
  return refused ? ErrorKind::Config : ErrorKind::PeerLost;
}

// While a split is under way, NCCL's own thread may write the handle.
ncclComm* handle_of(NcclWorld::Link& link) {
  return std::atomic_ref<ncclComm*>(link.handle).load();
}

}  // namespace

struct NcclWorld::Operation {
  std::string what;
  // Recorded after the stream has waited for the caller's queued work, so that the time-out does
  // not include that work.
  mutable device::CudaEvent begun;
  mutable device::CudaEvent done;
  std::optional<Stopwatch> running;  // since the watching thread saw `begun`
};

// All communicators share one stream. NCCL's kernels hold a part of the GPU while they wait for
// their peers, so two of them at once on one GPU can wait for each other in a circle.
NcclWorld::NcclWorld(int rank, int size, at::Device device, double timeout_seconds)
    : rank_(rank),
      size_(size),
      device_(with_index(device)),
      timeout_(timeout_seconds),
      stream_(c10::cuda::getStreamFromPool(true, device_.index())),
      watcher_([this] { watch(); }) {}

NcclWorld::~NcclWorld() {
  if (watcher_.joinable()) {
    close(false);
  }
}

NcclWorld::Id NcclWorld::make_id() {
  ncclUniqueId id;
  const ncclResult_t result = ncclGetUniqueId(&id);
  ABT_CHECK(result == ncclSuccess, PeerLost, "nccl: cannot open a rendezvous: {}", text_of(result));
  return std::bit_cast<Id>(id);
}

void NcclWorld::join(const Id& id) {
  Lock lock(mutex_);
  throw_if_happened();
  const c10::cuda::CUDAGuard guard(device_.index());
  const auto nccl_id = std::bit_cast<ncclUniqueId>(id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const std::string what = formatted("rank {} joining {} workers", rank_, size_);
  Link& link = *links_.emplace_back(std::make_unique<Link>(rank_, size_));
  check(ncclCommInitRankConfig(&link.handle, size_, nccl_id, rank_, &config), what);
  settle(lock, link, what);
  link.watched = true;
}

NcclWorld::Link* NcclWorld::split(Link& link, int color, int key, int size) {
  Lock lock(mutex_);
  throw_if_happened();
  ABT_ASSERT(link.handle != nullptr, "split after the world's end");
  const c10::cuda::CUDAGuard guard(device_.index());
  const std::string what = formatted("split of {} workers", link.size);
  // NCCL writes the handle later, so it needs an address that stays valid.
  Link& part = *links_.emplace_back(std::make_unique<Link>(key, size));
  const bool takes_part = color != kNoColor;
  link.watched = false;
  check(
      ncclCommSplit(
          link.handle, takes_part ? color : NCCL_SPLIT_NOCOLOR, key, &part.handle, nullptr),
      what);
  // Once `link` has settled, part.handle is set; then the new communicator must settle too.
  settle(lock, link, what);
  link.watched = true;
  if (!takes_part) {
    return nullptr;
  }
  settle(lock, part, what);
  part.watched = true;
  return &part;
}

std::shared_ptr<const NcclWorld::Operation> NcclWorld::queue(Link& link, Call call) {
  Lock lock(mutex_);
  throw_if_happened();
  ABT_ASSERT(link.handle != nullptr, "{} after the world's end", describe(call));
  auto operation = std::make_shared<Operation>();
  operation->what = describe(call);
  const c10::cuda::CUDAStream stream(stream_);
  const c10::cuda::CUDAStreamGuard guard(stream);
  if (call.kind == Call::Kind::Barrier) {
    // The value is arbitrary. The memory is allocated on this stream, so `ready` is not needed.
    call.out = at::empty({1}, at::TensorOptions(at::kInt).device(device_));
  }
  for (const at::Tensor& tensor : {call.out, call.in}) {
    // If the caller frees the tensor, its memory is not reused before this stream is done with it.
    if (tensor.defined()) {
      c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream);
    }
  }
  call.ready.order_after();
  operation->begun.record(stream);
  link.watched = false;
  check(enqueue(call, link.rank, link.size, link.handle, stream.stream()), operation->what);
  settle(lock, link, operation->what);
  link.watched = true;
  operation->done.record(stream);
  open_.push_back(operation);
  return operation;
}

void NcclWorld::order_after(const Operation& operation) const {
  throw_if_happened();
  operation.done.block(c10::cuda::getCurrentCUDAStream(device_.index()));
}

void NcclWorld::wait(const Operation& operation) const {
  Pause pause;
  while (!operation.done.query()) {
    throw_if_happened();
    pause();
  }
  // An abort also ends the kernel, without a result, so check once more.
  throw_if_happened();
}

void NcclWorld::abort(std::exception_ptr cause) noexcept {
  set(std::move(cause));
  changed_.notify_all();
}

// Waits until NCCL has finished the background work of a call.
void NcclWorld::settle(Lock& lock, Link& link, const std::string& what) {
  const Stopwatch watch;
  Pause pause;
  while (true) {
    throw_if_happened();  // after an abort the handle is gone
    ncclResult_t state = ncclInProgress;
    if (ncclComm* handle = handle_of(link)) {
      const ncclResult_t asked = ncclCommGetAsyncError(handle, &state);
      check(asked == ncclSuccess ? state : asked, what);
    }
    if (state == ncclSuccess) {
      return;
    }
    if (watch.seconds() > timeout_) {
      fail(overdue(what));
    }
    lock.unlock();
    pause();
    lock.lock();
  }
}

void NcclWorld::check(int result, const std::string& what) {
  const auto nccl_result = static_cast<ncclResult_t>(result);
  if (!good(nccl_result)) {
    fail(Error(kind_of(nccl_result), formatted("nccl: {}: {}", what, text_of(nccl_result))));
  }
}

TimedOut NcclWorld::overdue(const std::string& what) const {
  return {formatted("nccl: {}", what), timeout_, {}};
}

void NcclWorld::watch() noexcept {
  Lock lock(mutex_);
  const auto told = [&] { return closing_ || happened(); };
  while (!changed_.wait_for(lock, kLook, told)) {
    try {
      look();
    } catch (...) {
      set(std::current_exception());
    }
  }
  if (happened()) {
    abort_links();
    // After an abort, nothing is left to watch.
    changed_.wait(lock, [&] { return closing_; });
  }
}

void NcclWorld::look() {
  for (const auto& link : links_) {
    if (link->watched && link->handle != nullptr) {
      ncclResult_t state = ncclSuccess;
      const auto asked = ncclCommGetAsyncError(link->handle, &state);
      const auto result = asked == ncclSuccess ? state : asked;
      ABT_CHECK(
          good(result), PeerLost, "nccl: one of {} workers was lost: {}", link->size,
          text_of(result));
    }
  }
  // There is one stream, so operations end in the order in which they began.
  while (!open_.empty() && open_.front()->done.query()) {
    open_.pop_front();
  }
  if (!open_.empty()) {
    Operation& first = *open_.front();
    if (!first.running && first.begun.query()) {
      first.running.emplace();
    }
    if (first.running && first.running->seconds() > timeout_) {
      throw overdue(first.what);
    }
  }
}

// Aborts all NCCL communicators, which ends operations that hang on the GPU. The caller holds the
// mutex.
void NcclWorld::abort_links() noexcept {
  open_.clear();
  try {
    const c10::cuda::CUDAGuard guard(device_.index());
    // All are aborted in one NCCL group, as NCCL requires: aborting one may wait for work that only
    // the abort of another ends. Parents come first, because aborting a parent ends a split under
    // way and reveals the new communicator's handle.
    bool ended = ncclGroupStart() == ncclSuccess;
    for (const auto& link : links_) {
      if (ncclComm* handle = handle_of(*link)) {
        link->handle = nullptr;
        ended = good(ncclCommAbort(handle)) && ended;
      }
    }
    ended = good(ncclGroupEnd()) && ended;
    if (!ended) {
      std::fprintf(stderr, "warning: nccl: a communicator did not abort\n");
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warning: nccl: abort: %s\n", error.what());
  }
}

// Ends a communicator together with its other members. Then all their queued operations are done.
void NcclWorld::finalize(Lock& lock, Link& link) {
  const std::string what = formatted("end of a group of {} workers", link.size);
  link.watched = false;
  check(ncclCommFinalize(link.handle), what);
  settle(lock, link, what);
  check(ncclCommDestroy(std::exchange(link.handle, nullptr)), what);
}

void NcclWorld::close(bool agreed) noexcept {
  try {
    Lock lock(mutex_);
    const c10::cuda::CUDAGuard guard(device_.index());
    ABT_CHECK(agreed, PeerLost, "a worker left NCCL because of an error");
    for (auto link = links_.rbegin(); link != links_.rend(); ++link) {
      if ((*link)->handle != nullptr && !happened()) {
        finalize(lock, **link);
      }
    }
  } catch (...) {
    set(std::current_exception());
  }
  {
    const Lock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

}  // namespace abtrain::comm
