// A collective under way in one process, as streams of messages to and from
// each other member. Used by the world's thread only.
#pragma once

#include <vector>

#include "base/clock.h"
#include "comm/call.h"
#include "comm/failure.h"
#include "comm/mpi/stream.h"

namespace abtrain::comm {

// A communicator as the world's thread sees it.
struct MpiGroup {
  MpiComm comm;
  int rank = 0;
  std::vector<int> workers;  // the members' ranks in the world
  std::uint32_t calls = 0;   // collectives begun
  int size() const {
    return static_cast<int>(workers.size());
  }
};

class MpiCollective {
 public:
  // Both arguments must outlive the collective.
  MpiCollective(MpiGroup& group, const Call& call);

  // Advances whatever can be advanced; true if anything was. Throws Error.
  bool advance();
  bool done() const;
  double seconds_since_progress() const {
    return since_progress_.seconds();
  }
  // What to throw if that is too long.
  TimedOut overdue() const;
  // Throws Error(Config) when a member has sent something for a different call.
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
  std::uint32_t number_;
  std::int64_t width_;  // bytes per element
  Stopwatch since_progress_;

  // For a reduction: this member's own chunk in elements, how much of it is
  // reduced, and one ring of pieces per other member.
  std::int64_t own_begin_ = 0;
  std::int64_t own_count_ = 0;
  std::int64_t reduced_ = 0;  // bytes
  at::Tensor rings_;
  std::vector<MpiStream> parts_in_, parts_out_;  // to be reduced
  std::vector<MpiStream> results_in_, results_out_;
};

}  // namespace abtrain::comm
