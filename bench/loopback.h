// A group with only one real member: the others are assumed to hold and send
// the same data, so that every collective is a copy in memory. It serves to
// time the work before and after collectives in one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "comm/communicator.h"

namespace abtrain::bench {

class Loopback : public comm::Communicator {
 public:
  explicit Loopback(int members) : Communicator(0, members) {}

  std::unique_ptr<Communicator> split(int) override {
    throw std::logic_error("a loop-back group cannot be split");
  }
  comm::Pending start(comm::Call call) override {
    using Kind = comm::Call::Kind;
    if (call.kind == Kind::AllGather) {
      repeat(call.out, call.in, call.counts);
    } else if (call.kind == Kind::AllToAll) {
      repeat(
          call.out, call.in.narrow(0, 0, call.counts[0]),
          std::vector<std::int64_t>(call.counts.size(), call.counts[0]));
    } else if (call.kind == Kind::ReduceScatter) {
      call.out.copy_(call.in.narrow(0, 0, call.out.numel()));
    }
    if (call.reduces() && call.op == comm::ReduceOp::Sum) {
      call.out.mul_(size());
    }
    return {};
  }
  void barrier() override {}
  void check_peers() override {}

 private:
  // Copies `in` into the part of each member, which may be shorter or longer:
  // the rest of a longer one is zeroed.
  static void repeat(
      const at::Tensor& out, const at::Tensor& in, const std::vector<std::int64_t>& counts) {
    std::int64_t at = 0;
    for (const std::int64_t count : counts) {
      const std::int64_t same = std::min(count, in.numel());
      out.narrow(0, at, same).copy_(in.narrow(0, 0, same));
      if (count > same) {
        out.narrow(0, at + same, count - same).zero_();
      }
      at += count;
    }
  }
};

}  // namespace abtrain::bench
