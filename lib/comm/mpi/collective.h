// A collective under way in one process, as streams of messages to and from each other member. Only
// the thread that makes all MPI calls uses it (comm/mpi/world.h).
#pragma once

#include <vector>

#include "base/clock.h"
#include "comm/call.h"
#include "comm/failure.h"
#include "comm/mpi/stream.h"

namespace abtrain::comm {

// A message's tag says to which call of a communicator the message belongs. From the lowest bit on,
// a tag holds one bit for the phase, six bits for the call's number modulo kOpenCalls, and a hash
// of the call's arguments. The hash fills the bits that are left: the library's largest tag
// (MPI_TAG_UB) has at least 15 bits, 19 with Intel MPI between hosts, and 23 with Open MPI over
// UCX.
struct MpiTags {
  // A call begins only if fewer calls than this have begun since the oldest unfinished one. So if
  // two calls have the same tag, each member has posted all messages of the earlier call before any
  // of the later one, and MPI keeps their order.
  static constexpr std::uint32_t kOpenCalls = 64;

  int kind_bits = 8;

  static MpiTags below(int bound);
  int tag(std::uint32_t number, std::uint32_t kind, int phase) const;
  // Whether a tag has this call number, modulo kOpenCalls, but another hash: then the sender has
  // made a different call.
  bool differs(int tag, std::uint32_t number, std::uint32_t kind) const;
};

// A communicator of the MPI thread.
struct MpiGroup {
  MpiComm comm;
  MpiTags tags;
  int rank = 0;
  std::vector<int> workers;  // the members' ranks in the world
  std::uint32_t calls = 0;   // collectives begun
  int size() const {
    return static_cast<int>(workers.size());
  }
};

class MpiCollective {
 public:
  // Both arguments must outlive this object.
  MpiCollective(MpiGroup& group, const Call& call);

  // Advances all transfers that can advance, and returns whether any has. Throws Error.
  bool advance();
  bool done() const;
  // The collective's number in its group, from 0.
  std::uint32_t number() const {
    return number_;
  }
  double seconds_since_progress() const {
    return since_progress_.seconds();
  }
  // The error to throw if seconds_since_progress() is too long.
  TimedOut overdue() const;
  // Throws Error(Config) if a member has sent a message of a different call, and Error(PeerLost) if
  // a member is lost.
  void check_match() const;

 private:
  using Way = MpiStream::Way;
  bool take_arrivals();
  void exchange(const at::Tensor& in, bool in_place);
  void exchange_pieces();
  std::int64_t reduce(std::int64_t begin);
  char* bytes_at(const at::Tensor& tensor, std::int64_t element) const;
  int tag(int phase) const;

  MpiGroup& group_;
  const Call& call_;
  const std::uint32_t number_;
  const std::uint32_t kind_;  // a hash of the arguments that all members share
  std::int64_t width_;  // bytes per element
  Stopwatch since_progress_;

  // For a reduction: this member's own chunk in elements, the reduced part of it in bytes, and one
  // ring of pieces per other member.
  std::int64_t own_begin_ = 0;
  std::int64_t own_count_ = 0;
  std::int64_t reduced_ = 0;  // bytes
  at::Tensor rings_;
  std::vector<MpiStream> parts_in_, parts_out_;  // chunks to be reduced
  std::vector<MpiStream> results_in_, results_out_;
};

}  // namespace abtrain::comm
