// A collective as one member requests it, and the functions on it that all back ends use.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device/stream.h"
#include "ops/reduce_buffers.h"

namespace abtrain::comm {

using ops::ReduceOp;  // Sum | Mean | Max

// The purpose of a transfer. Reports and checkpoints list traffic by purpose, in this order.
enum class Purpose { Gradient, Sync, Factors, Orders, Metrics };
constexpr int kPurposes = 5;

// One member's side of a collective.
struct Call {
  enum class Kind { AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Barrier, Split };
  Kind kind = Kind::Barrier;
  at::Tensor out = {};  // the buffer, if there is only one
  at::Tensor in = {};
  ReduceOp op = ReduceOp::Sum;
  int root = 0;
  std::vector<std::int64_t> counts = {};  // all-gather, all-to-all: elements by member
  Purpose purpose = Purpose::Metrics;
  int color = 0;             // split: the group to join
  device::Event ready = {};  // the end of the caller's earlier work; the transfer starts after it

  // Whether the call combines the members' elements (sum, mean or maximum).
  bool reduces() const {
    return kind == Kind::AllReduce || kind == Kind::ReduceScatter;
  }
  // The buffer with this member's contribution.
  const at::Tensor& source() const {
    return in.defined() ? in : out;
  }
  // The buffer that has the same length on every member.
  const at::Tensor& common_buffer() const {
    return kind == Kind::ReduceScatter || kind == Kind::AllToAll ? in : out;
  }
};

// Elements that one member sends to another in a call that does not reduce. `source` is their
// offset in the sender's source(), `target` the offset in the receiver's `out`.
struct Piece {
  std::int64_t source = 0;
  std::int64_t target = 0;
  std::int64_t count = 0;
};
Piece piece_of(const Call& call, int from, int to);

// "all_reduce of 100 Float on cpu, sum"
std::string describe(const Call& call);

}  // namespace abtrain::comm
