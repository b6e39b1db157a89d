#include <nccl.h>

#include <algorithm>

#include "base/error.h"
#include "comm/nccl/calls.h"
#include "comm/traffic.h"

namespace abtrain::comm {

namespace {

using Kind = Call::Kind;

ncclDataType_t type_of(const at::Tensor& t) {
  switch (t.scalar_type()) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kHalf:
      return ncclFloat16;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kInt:
      return ncclInt32;
    case at::kLong:
      return ncclInt64;
    case at::kByte:
      return ncclUint8;
    default:
      ABT_ASSERT(false, "nccl: dtype {}", c10::toString(t.scalar_type()));
  }
}

ncclRedOp_t op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return ncclSum;
    case ReduceOp::Mean:
      return ncclAvg;
    case ReduceOp::Max:
      return ncclMax;
  }
  ABT_ASSERT(false, "nccl: reduction {}", static_cast<int>(op));
}

std::size_t count_of(const at::Tensor& t) {
  return static_cast<std::size_t>(t.numel());
}

void* at_element(const at::Tensor& t, std::int64_t element) {
  return static_cast<char*>(t.mutable_data_ptr()) +
         element * static_cast<std::int64_t>(t.element_size());
}

// Makes the NCCL calls each(0) .. each(n - 1) as one NCCL group.
template <class Each>
ncclResult_t grouped(int n, const Each& each) {
  ncclResult_t first = ncclGroupStart();
  if (first != ncclSuccess) {
    return first;
  }
  for (int i = 0; i < n; ++i) {
    const ncclResult_t result = each(i);
    if (result != ncclSuccess && result != ncclInProgress) {
      first = result;
      break;
    }
  }
  // Needed even after an error: otherwise the thread's next calls would join the group.
  const ncclResult_t last = ncclGroupEnd();
  return first == ncclSuccess ? last : first;
}

}  // namespace

int enqueue(const Call& call, int rank, int size, ncclComm* communicator, CUstream_st* stream) {
  const auto type = type_of(call.out);
  switch (call.kind) {
    case Kind::Barrier:  // no member gets the sum before all have taken part
    case Kind::AllReduce: {
      void* data = call.out.mutable_data_ptr();
      return ncclAllReduce(
          data, data, count_of(call.out), type, op_of(call.op), communicator, stream);
    }
    case Kind::Broadcast: {
      void* data = call.out.mutable_data_ptr();
      return ncclBroadcast(data, data, count_of(call.out), type, call.root, communicator, stream);
    }
    case Kind::AllGather: {
      const auto& counts = call.counts;
      if (std::equal(counts.begin() + 1, counts.end(), counts.begin())) {
        return ncclAllGather(
            call.in.const_data_ptr(), call.out.mutable_data_ptr(), count_of(call.in), type,
            communicator, stream);
      }
      std::int64_t begin = 0;
      return grouped(size, [&](int i) {
        void* part = at_element(call.out, begin);
        begin += counts[i];
        return counts[i] == 0
                   ? ncclSuccess
                   : ncclBroadcast(
                         i == rank ? call.in.const_data_ptr() : part, part,
                         static_cast<std::size_t>(counts[i]), type, i, communicator, stream);
      });
    }
    case Kind::ReduceScatter: {
      const auto numel = call.in.numel();
      if (numel % size == 0) {
        return ncclReduceScatter(
            call.in.const_data_ptr(), call.out.mutable_data_ptr(), count_of(call.out), type,
            op_of(call.op), communicator, stream);
      }
      return grouped(size, [&](int i) {
        const auto count = chunk_size(numel, size, i);
        return count == 0 ? ncclSuccess
                          : ncclReduce(
                                at_element(call.in, chunk_begin(numel, size, i)),
                                i == rank ? call.out.mutable_data_ptr() : nullptr,
                                static_cast<std::size_t>(count), type, op_of(call.op), i,
                                communicator, stream);
      });
    }
    case Kind::AllToAll: {
      const auto own = call.counts[static_cast<std::size_t>(rank)];
      std::int64_t begin = 0;
      return grouped(2 * size, [&](int i) {
        const int peer = i / 2;
        if (i % 2 != 0) {
          return own == 0 ? ncclSuccess
                          : ncclRecv(
                                at_element(call.out, peer * own), static_cast<std::size_t>(own),
                                type, peer, communicator, stream);
        }
        const auto count = call.counts[static_cast<std::size_t>(peer)];
        void* part = at_element(call.in, begin);
        begin += count;
        return count == 0
                   ? ncclSuccess
                   : ncclSend(
                         part, static_cast<std::size_t>(count), type, peer, communicator, stream);
      });
    }
    case Kind::Split:
      break;
  }
  ABT_ASSERT(false, "nccl: {} is not a transfer", describe(call));
}

}  // namespace abtrain::comm
