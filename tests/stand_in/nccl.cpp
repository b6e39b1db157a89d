// Stands in for NCCL among threads of one process, on the stand-in for GPUs: collectives wait
// in their stream for all members, calls end in the background (ncclInProgress), a split writes
// its handle later, and an abort frees only the member that aborts. What NCCL forbids ends the
// process with a message; calls that do not match wait forever, as NCCL's do.
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stand_in/stand_in.h"

namespace {

enum class Kind { AllReduce, Broadcast, Reduce, AllGather, ReduceScatter, Send, Recv };

struct Operation {
  Kind kind;
  const void* in;
  void* out;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;  // or the root

  // What all members of a collective must agree on.
  auto agreed() const {
    return std::tuple(kind, count, type, op, peer);
  }
  bool collective() const {
    return kind != Kind::Send && kind != Kind::Recv;
  }
};

using Transfer = std::vector<Operation>;

// One transfer of a group, as its members come to it.
struct Meeting {
  std::map<int, Transfer> transfers;
  int have_read = 0;
};

struct Group;

struct Split {
  struct Member {
    int color;
    int key;
  };
  std::map<int, Member> members;
  std::map<int, std::shared_ptr<Group>> groups;  // by color
};

// The members of a communicator.
struct Group {
  explicit Group(int members) : size(members) {}

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0;
  int finalized = 0;
  std::map<std::uint64_t, Meeting> meetings;
  std::map<std::uint64_t, Split> splits;
};

[[noreturn]] void forbidden(const char* what) {
  std::fprintf(stderr, "stand-in for NCCL: %s\n", what);
  std::abort();
}

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
    case ncclInt8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclFloat32:
    case ncclInt32:
      return 4;
    default:
      return 8;
  }
}

using Bytes = std::vector<char>;

template <class T>
Bytes reduced(const std::vector<const void*>& inputs, std::size_t count, ncclRedOp_t op) {
  Bytes bytes(count * sizeof(T));
  auto* out = reinterpret_cast<T*>(bytes.data());
  for (std::size_t i = 0; i < count; ++i) {
    T value = static_cast<const T*>(inputs[0])[i];
    for (std::size_t k = 1; k < inputs.size(); ++k) {
      const T other = static_cast<const T*>(inputs[k])[i];
      value = op == ncclMax ? std::max(value, other) : static_cast<T>(value + other);
    }
    out[i] = op == ncclAvg ? static_cast<T>(value / static_cast<T>(inputs.size())) : value;
  }
  return bytes;
}

Bytes reduced(
    const std::vector<const void*>& inputs, std::size_t count, ncclDataType_t type,
    ncclRedOp_t op) {
  switch (type) {
    case ncclFloat32:
      return reduced<float>(inputs, count, op);
    case ncclFloat64:
      return reduced<double>(inputs, count, op);
    case ncclFloat16:
      return reduced<c10::Half>(inputs, count, op);
    case ncclBfloat16:
      return reduced<c10::BFloat16>(inputs, count, op);
    case ncclInt32:
      return reduced<std::int32_t>(inputs, count, op);
    case ncclInt64:
      return reduced<std::int64_t>(inputs, count, op);
    case ncclUint8:
      return reduced<std::uint8_t>(inputs, count, op);
    default:
      forbidden("a dtype that it does not know");
  }
}

bool fit(const std::map<int, Transfer>& transfers) {
  const Transfer& first = transfers.begin()->second;
  for (const auto& [rank, transfer] : transfers) {
    const bool collective = !first.empty() && first.front().collective();
    if (collective && transfer.size() != first.size()) {
      return false;
    }
    for (std::size_t i = 0; i < transfer.size(); ++i) {
      if (transfer[i].collective() != collective ||
          (collective && transfer[i].agreed() != first[i].agreed())) {
        return false;
      }
    }
  }
  return true;
}

// What `rank` receives by its operation `i`.
Bytes received(const std::map<int, Transfer>& transfers, int rank, std::size_t i) {
  const Operation& own = transfers.at(rank)[i];
  const std::size_t size = bytes_of(own.type);
  std::vector<const void*> inputs;
  for (const auto& [member, transfer] : transfers) {
    if (own.collective()) {
      const auto* in = static_cast<const char*>(transfer[i].in);
      const std::size_t begin = own.kind == Kind::ReduceScatter ? rank * own.count * size : 0;
      inputs.push_back(in + begin);
    }
  }
  Bytes bytes;
  switch (own.kind) {
    case Kind::AllReduce:
    case Kind::ReduceScatter:
      return reduced(inputs, own.count, own.type, own.op);
    case Kind::Reduce:
      return rank == own.peer ? reduced(inputs, own.count, own.type, own.op) : bytes;
    case Kind::Broadcast: {
      const auto* in = static_cast<const char*>(inputs[own.peer]);
      return {in, in + own.count * size};
    }
    case Kind::AllGather:
      for (const void* input : inputs) {
        const auto* in = static_cast<const char*>(input);
        bytes.insert(bytes.end(), in, in + own.count * size);
      }
      return bytes;
    case Kind::Send:
      return bytes;
    case Kind::Recv:
      break;
  }
  // The n-th message from this peer.
  const Transfer& mine = transfers.at(rank);
  auto before = std::count_if(mine.begin(), mine.begin() + i, [&](const Operation& other) {
    return other.kind == Kind::Recv && other.peer == own.peer;
  });
  for (const Operation& sent : transfers.at(own.peer)) {
    if (sent.kind == Kind::Send && sent.peer == rank && before-- == 0) {
      if (sent.count != own.count) {
        forbidden("a message has another length than its receiver expects");
      }
      const auto* in = static_cast<const char*>(sent.in);
      return {in, in + sent.count * size};
    }
  }
  forbidden("a message is expected that nobody sends");
}

}  // namespace

struct ncclComm {
  ncclComm(std::shared_ptr<Group> members, int number) : group(std::move(members)), rank(number) {}

  const std::shared_ptr<Group> group;
  const int rank;
  std::atomic<bool> in_use = false;
  // The following belongs to the group's mutex.
  bool aborted = false;
  bool finalizing = false;
  bool gone = false;
  int polls = 2;  // until a call has ended in the background
  std::uint64_t transfers = 0;
  std::uint64_t splits = 0;
  ncclComm** part = nullptr;    // of a split under way
  std::function<void()> queue;  // a transfer that is not in its stream yet

  // Runs on a stream's thread.
  void perform(std::uint64_t number, const Transfer& transfer) {
    std::unique_lock lock(group->mutex);
    Meeting& meeting = group->meetings[number];
    meeting.transfers[rank] = transfer;
    group->changed.notify_all();
    const auto all = [&] {
      return static_cast<int>(meeting.transfers.size()) == group->size && fit(meeting.transfers);
    };
    group->changed.wait(lock, [&] { return aborted || all(); });
    if (aborted) {
      return;
    }
    std::vector<Bytes> results;
    for (std::size_t i = 0; i < transfer.size(); ++i) {
      results.push_back(received(meeting.transfers, rank, i));
    }
    ++meeting.have_read;  // buffers may be written once all have read them
    group->changed.notify_all();
    group->changed.wait(lock, [&] { return aborted || meeting.have_read == group->size; });
    for (std::size_t i = 0; i < transfer.size() && !aborted; ++i) {
      if (!results[i].empty()) {
        std::memcpy(transfer[i].out, results[i].data(), results[i].size());
      }
    }
  }

  // Whether the split under way is complete; then its handle is there.
  bool finish_split() {
    Split& split = group->splits[splits - 1];
    if (static_cast<int>(split.members.size()) < group->size) {
      return false;
    }
    const Split::Member own = split.members.at(rank);
    if (own.color != NCCL_SPLIT_NOCOLOR) {
      int size = 0;
      int number = 0;
      for (const auto& [other, member] : split.members) {
        if (member.color == own.color) {
          ++size;
          number += std::pair(member.key, other) < std::pair(own.key, rank) ? 1 : 0;
        }
      }
      auto& members = split.groups[own.color];
      if (!members) {
        members = std::make_shared<Group>(size);
        members->joined = size;
      }
      std::atomic_ref<ncclComm*>(*part).store(new ncclComm(members, number));
    }
    part = nullptr;
    return true;
  }

  ncclResult_t state() {
    if (abtrain::stand_in::fails("ncclCommGetAsyncError")) {
      return ncclRemoteError;
    }
    if (polls == 0 && queue) {
      std::exchange(queue, nullptr)();
    }
    const bool waiting = group->joined < group->size || (polls > 0 && polls-- > 0) ||
                         (part != nullptr && !finish_split()) ||
                         (finalizing && group->finalized < group->size);
    return waiting ? ncclInProgress : ncclSuccess;
  }
};

namespace {

// A call on a communicator; two at once are forbidden. Communicators are never freed.
class Use {
 public:
  explicit Use(ncclComm& comm) : comm_(entered(comm)), lock_(comm.group->mutex) {
    if (comm.gone) {
      forbidden("a communicator is used that was destroyed or aborted");
    }
  }
  ~Use() {
    comm_.in_use = false;
  }

 private:
  static ncclComm& entered(ncclComm& comm) {
    if (comm.in_use.exchange(true)) {
      forbidden("two threads use a communicator at once");
    }
    return comm;
  }

  ncclComm& comm_;
  std::lock_guard<std::mutex> lock_;
};

struct Queued {
  ncclComm* comm;
  cudaStream_t stream;
  Operation operation;
};
thread_local int depth = 0;
thread_local std::vector<Queued> queued;

void run(void* data) {
  const std::unique_ptr<std::function<void()>> work(static_cast<std::function<void()>*>(data));
  (*work)();
}

ncclResult_t launch(ncclComm& comm, cudaStream_t stream, Transfer transfer) {
  {
    const Use use(comm);
    if (comm.group->joined < comm.group->size || comm.part != nullptr || comm.polls > 0 ||
        comm.queue) {
      forbidden("a collective while an earlier call is in progress");
    }
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    if (status != cudaStreamCaptureStatusNone) {
      forbidden("a collective is captured, which it cannot be here");
    }
    const std::uint64_t number = comm.transfers++;
    comm.polls = 2;
    // What is queued is late: whoever does not wait for it records events too early.
    comm.queue = [&comm, stream, number, transfer = std::move(transfer)] {
      auto work = [&comm, number, transfer] { comm.perform(number, transfer); };
      cudaLaunchHostFunc(stream, run, new std::function<void()>(std::move(work)));
    };
  }
  return ncclInProgress;
}

ncclResult_t enqueue(ncclComm* comm, cudaStream_t stream, const Operation& operation) {
  if (depth == 0) {
    return launch(*comm, stream, {operation});
  }
  queued.push_back({comm, stream, operation});
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote error of the stand-in" : "error of the stand-in";
}

const char* ncclGetLastError(ncclComm_t) {
  return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<std::uint64_t> next = 1;
  *id = {};
  const std::uint64_t number = next++;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<Group>> groups;
  if (abtrain::stand_in::fails("ncclCommInitRankConfig")) {
    return ncclSystemError;
  }
  std::shared_ptr<Group> group;
  {
    const std::lock_guard lock(mutex);
    auto& found = groups[{id.internal, sizeof id.internal}];
    if (!found) {
      found = std::make_shared<Group>(size);
    }
    group = found;
  }
  *comm = new ncclComm(group, rank);
  const std::lock_guard lock(group->mutex);
  ++group->joined;
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t*) {
  const Use use(*comm);
  if (abtrain::stand_in::fails("ncclCommSplit")) {
    return ncclSystemError;
  }
  comm->part = part;
  comm->polls = 2;
  comm->group->splits[comm->splits++].members[comm->rank] = {color, key};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const Use use(*comm);
  *state = comm->state();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Use use(*comm);
  comm->finalizing = true;
  ++comm->group->finalized;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Use use(*comm);
  if (comm->group->finalized < comm->group->size) {
    forbidden("a communicator is destroyed before all members have ended it");
  }
  comm->gone = true;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Use use(*comm);
  comm->aborted = true;
  comm->gone = true;
  comm->group->changed.notify_all();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (depth == 0) {
    forbidden("a group ends that was not begun");
  }
  if (--depth > 0 || queued.empty()) {
    return ncclSuccess;
  }
  Transfer transfer;
  const Queued first = queued.front();
  for (const Queued& each : std::exchange(queued, {})) {
    if (each.comm != first.comm || each.stream != first.stream) {
      forbidden("a group of calls on several communicators");
    }
    transfer.push_back(each.operation);
  }
  return launch(*first.comm, first.stream, std::move(transfer));
}

ncclResult_t ncclAllReduce(
    const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
    ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::AllReduce, in, out, count, type, op, 0});
}

ncclResult_t ncclBroadcast(
    const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
    cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::Broadcast, in, out, count, type, ncclSum, root});
}

ncclResult_t ncclReduce(
    const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
    ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::Reduce, in, out, count, type, op, root});
}

ncclResult_t ncclAllGather(
    const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
    cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::AllGather, in, out, count, type, ncclSum, 0});
}

ncclResult_t ncclReduceScatter(
    const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
    ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::ReduceScatter, in, out, count, type, op, 0});
}

ncclResult_t ncclSend(
    const void* in, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
    cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::Send, in, nullptr, count, type, ncclSum, peer});
}

ncclResult_t ncclRecv(
    void* out, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
    cudaStream_t stream) {
  return enqueue(comm, stream, {Kind::Recv, nullptr, out, count, type, ncclSum, peer});
}

}  // extern "C"
