// A collective as its caller asked for it, and the checks that every back end
// makes of it. Internal to the back ends.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "device/stream.h"

namespace abtrain::comm {

// One member's side of a collective.
struct Call {
  enum class Kind {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Barrier,
    Split
  };
  Kind kind = Kind::Barrier;
  at::Tensor out = {};  // the buffer where there is only one
  at::Tensor in = {};
  ReduceOp op = ReduceOp::Sum;
  int root = 0;
  std::vector<std::int64_t> counts = {};  // all-gather, all-to-all
  int color = 0;                          // of a split
  int key = 0;
  device::Event ready = {};  // the end of what its owner had queued before
};

// The buffer that is equally long on all members.
inline const at::Tensor& common_buffer(const Call& call) {
  const bool by_input = call.kind == Call::Kind::ReduceScatter ||
      call.kind == Call::Kind::AllToAll;
  return by_input ? call.in : call.out;
}

// "all_reduce of 100 Float on cpu, sum"
std::string describe(const Call& call);

// Checks arguments, then hands a call over: what back ends build on.
class CheckedCommunicator : public Communicator {
 public:
  Pending all_reduce(at::Tensor buffer, ReduceOp op, Purpose purpose) final;
  Pending all_gather(
      at::Tensor out,
      at::Tensor in,
      const std::vector<std::int64_t>& counts,
      Purpose purpose) final;
  Pending reduce_scatter(
      at::Tensor out,
      at::Tensor in,
      ReduceOp op,
      Purpose purpose) final;
  Pending all_to_all(
      at::Tensor out,
      at::Tensor in,
      const std::vector<std::int64_t>& counts,
      Purpose purpose) final;
  Pending broadcast(at::Tensor buffer, int root, Purpose purpose) final;

 protected:
  virtual Pending start(Call call) = 0;
};

}  // namespace abtrain::comm
