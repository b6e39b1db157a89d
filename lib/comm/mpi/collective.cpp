#include "comm/mpi/collective.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

#include "base/error.h"
#include "comm/traffic.h"

namespace abtrain::comm {

namespace {

constexpr int kNumberShift = 1;
constexpr int kKindShift = kNumberShift + std::countr_zero(MpiTags::kOpenCalls);

std::uint32_t kind_of(const Call& call) {
  const at::Tensor& sized = call.common_buffer();
  std::string text = formatted(
      "{} {} {} {}{}", static_cast<int>(call.kind), static_cast<int>(call.op), call.root,
      sized.numel(), c10::toString(sized.scalar_type()));
  for (const std::int64_t count : call.counts) {
    text += formatted(" {}", count);
  }
  // The hash is the same in all processes, because they run one program.
  return static_cast<std::uint32_t>(std::hash<std::string>()(text));
}

void copy_bytes(char* to, const char* from, std::size_t count) {
  if (count > 0) {  // an empty buffer's address may be null
    std::memmove(to, from, count);
  }
}

bool post_all(std::vector<MpiStream>& streams) {
  bool moved = false;
  for (MpiStream& stream : streams) {
    moved |= stream.post();
  }
  return moved;
}

bool all_done(const std::vector<MpiStream>& streams) {
  return std::ranges::all_of(streams, [](const MpiStream& stream) { return stream.done(); });
}

}  // namespace

MpiTags MpiTags::below(int bound) {
  const int bits = std::bit_width(static_cast<std::uint32_t>(bound) + 1) - 1;
  ABT_CHECK(
      bits >= 15, Config, "this MPI's largest tag is {}: expected at least 32767 (MPI_TAG_UB)",
      bound);
  return {bits - kKindShift};
}

int MpiTags::tag(std::uint32_t number, std::uint32_t kind, int phase) const {
  return static_cast<int>(
      (kind & ((1u << kind_bits) - 1)) << kKindShift | number % kOpenCalls << kNumberShift |
      static_cast<std::uint32_t>(phase));
}

bool MpiTags::differs(int tag, std::uint32_t number, std::uint32_t kind) const {
  const int call = tag >> kNumberShift;
  const int own = this->tag(number, kind, 0) >> kNumberShift;
  return call != own && static_cast<std::uint32_t>(call ^ own) % kOpenCalls == 0;
}

MpiCollective::MpiCollective(MpiGroup& group, const Call& call)
    : group_(group),
      call_(call),
      number_(group.calls++),
      kind_(kind_of(call)),
      width_(static_cast<std::int64_t>(call.out.element_size())) {
  if (call_.reduces()) {
    exchange(call_.common_buffer(), call_.kind == Call::Kind::AllReduce);
  } else {
    exchange_pieces();
  }
}

int MpiCollective::tag(int phase) const {
  return group_.tags.tag(number_, kind_, phase);
}

char* MpiCollective::bytes_at(const at::Tensor& tensor, std::int64_t element) const {
  return static_cast<char*>(tensor.data_ptr()) + element * width_;
}

// Opens the streams of a reduction. Takes peers in the order rank + 1, rank + 2, ..., so that at
// any moment the members send to different peers.
void MpiCollective::exchange(const at::Tensor& in, bool in_place) {
  const int n = group_.size();
  const int rank = group_.rank;
  const std::int64_t numel = in.numel();
  if (n == 1) {
    if (!in_place) {
      copy_bytes(bytes_at(call_.out, 0), bytes_at(in, 0), in.nbytes());
    }
    return;
  }
  own_begin_ = chunk_begin(numel, n, rank);
  own_count_ = chunk_size(numel, n, rank);
  const std::int64_t own_bytes = own_count_ * width_;
  const std::int64_t ring = std::min(own_bytes, kWindow * kPieceBytes);
  const std::int64_t ring_numel = ring / width_;
  rings_ = at::empty({(n - 1) * ring_numel}, in.options());
  for (int k = 1; k < n; ++k) {
    const int peer = (rank + k) % n;
    const std::int64_t begin = chunk_begin(numel, n, peer);
    const std::int64_t bytes = chunk_size(numel, n, peer) * width_;
    parts_out_.emplace_back(Way::Send, group_.comm, peer, tag(0), bytes_at(in, begin), bytes);
    parts_in_.emplace_back(
        Way::Receive, group_.comm, peer, tag(0), bytes_at(rings_, (k - 1) * ring_numel), own_bytes,
        ring);
    if (in_place) {
      results_out_.emplace_back(
          Way::Send, group_.comm, peer, tag(1), bytes_at(in, own_begin_), own_bytes);
      results_in_.emplace_back(Way::Receive, group_.comm, peer, tag(1), bytes_at(in, begin), bytes);
    }
  }
}

// Opens one stream each way with every other member.
void MpiCollective::exchange_pieces() {
  const int n = group_.size();
  const int rank = group_.rank;
  const auto add = [&](auto& streams, Way way, int peer, const Piece& piece) {
    const bool sends = way == Way::Send;
    streams.emplace_back(
        way, group_.comm, peer, tag(0),
        sends ? bytes_at(call_.source(), piece.source) : bytes_at(call_.out, piece.target),
        piece.count * width_);
  };
  for (int k = 1; k < n; ++k) {
    const int peer = (rank + k) % n;
    add(results_out_, Way::Send, peer, piece_of(call_, rank, peer));
    add(results_in_, Way::Receive, peer, piece_of(call_, peer, rank));
  }
  const Piece own = piece_of(call_, rank, rank);
  copy_bytes(
      bytes_at(call_.out, own.target), bytes_at(call_.source(), own.source),
      static_cast<std::size_t>(own.count * width_));
}

// Reduces the piece that begins at byte `begin` of the member's own chunk; returns the piece's end.
std::int64_t MpiCollective::reduce(std::int64_t begin) {
  const int n = group_.size();
  const std::int64_t end = std::min(begin + kPieceBytes, own_count_ * width_);
  const std::int64_t first = begin / width_;
  const std::int64_t count = (end - begin) / width_;
  const bool in_place = call_.kind == Call::Kind::AllReduce;
  const at::Tensor& in = in_place ? call_.out : call_.in;
  const at::Tensor own = in.narrow(0, own_begin_ + first, count);
  const std::int64_t ring = rings_.numel() / (n - 1);
  std::vector<at::Tensor> inputs;
  for (int member = 0; member < n; ++member) {
    const int k = (member - group_.rank + n) % n;
    inputs.push_back(k == 0 ? own : rings_.narrow(0, (k - 1) * ring + first % ring, count));
  }
  const at::Tensor out = in_place ? own : call_.out.narrow(0, first, count);
  ops::reduce_buffers(inputs, 0, count, {out}, 0, call_.op);
  return end;
}

// Returns whether any message has completed. Tests all streams at once, because every call into MPI
// polls all of its connections.
bool MpiCollective::take_arrivals() {
  std::vector<MpiStream*> streams;
  std::vector<MpiHandle> requests;
  for (auto* all : {&parts_in_, &parts_out_, &results_in_, &results_out_}) {
    for (MpiStream& stream : *all) {
      if (stream.waits()) {
        streams.push_back(&stream);
        requests.push_back(stream.oldest());
      }
    }
  }
  int through = 0;
  std::vector<int> which(requests.size());
  const MpiTable& mpi = *group_.comm.mpi;
  check_mpi(
      mpi,
      mpi.test_some(
          group_.comm.handle, static_cast<int>(requests.size()), requests.data(), &through,
          which.data()),
      "MPI_Testsome");
  for (int i = 0; i < through; ++i) {
    streams[static_cast<std::size_t>(which[static_cast<std::size_t>(i)])]->oldest_is_through();
  }
  return through > 0;
}

bool MpiCollective::advance() {
  bool moved = false;
  while (take_arrivals()) {
    moved = true;
  }
  moved |= post_all(parts_out_);
  for (MpiStream& stream : parts_in_) {
    // A ring's slot is free again once its piece has been reduced.
    stream.allow(std::min(stream.bytes, reduced_ + kWindow * kPieceBytes));
    moved |= stream.post();
  }
  const std::int64_t own_bytes = own_count_ * width_;
  while (reduced_ < own_bytes && std::ranges::all_of(parts_in_, [&](const MpiStream& stream) {
           return stream.finished() >= std::min(reduced_ + kPieceBytes, own_bytes);
         })) {
    reduced_ = reduce(reduced_);
    moved = true;
  }
  if (!parts_out_.empty()) {
    for (std::size_t i = 0; i < results_in_.size(); ++i) {
      results_out_[i].allow(reduced_);
      // The old bytes must have been sent before results overwrite them.
      results_in_[i].allow(parts_out_[i].finished());
    }
  }
  moved |= post_all(results_out_);
  moved |= post_all(results_in_);
  if (moved) {
    since_progress_.restart();
  }
  return moved;
}

bool MpiCollective::done() const {
  return all_done(parts_in_) && all_done(parts_out_) && all_done(results_in_) &&
         all_done(results_out_) && reduced_ == own_count_ * width_;
}

TimedOut MpiCollective::overdue() const {
  // A member that has not sent its part is late. A missing result is a weaker sign: its sender may
  // be waiting for the same part.
  std::vector<int> missing;
  for (const auto* streams : {&parts_in_, &results_in_, &parts_out_, &results_out_}) {
    for (const MpiStream& stream : *streams) {
      if (!stream.done()) {
        missing.push_back(group_.workers[static_cast<std::size_t>(stream.peer)]);
      }
    }
    if (!missing.empty()) {
      break;
    }
  }
  std::ranges::sort(missing);
  return {describe(call_), seconds_since_progress(), missing};
}

void MpiCollective::check_match() const {
  const MpiTable& mpi = *group_.comm.mpi;
  if (mpi.is_fault_tolerant() != 0) {
    check_mpi(mpi, mpi.check(group_.comm.handle), "MPIX_Comm_get_failed");
  }
  // A member's messages come in order. While nothing of this call has come from a member, its first
  // unreceived message belongs to this call or to an earlier one.
  for (const MpiStream& stream : call_.reduces() ? parts_in_ : results_in_) {
    if (!stream.waits() || stream.finished() > 0) {
      continue;
    }
    int there = 0;
    int tag = 0;
    check_mpi(mpi, mpi.probe(group_.comm.handle, stream.peer, &there, &tag), "MPI_Iprobe");
    ABT_CHECK(
        there == 0 || !group_.tags.differs(tag, number_, kind_), Config,
        "workers called different collectives: worker {} {}, worker {} a different one",
        group_.workers[static_cast<std::size_t>(group_.rank)], describe(call_),
        group_.workers[static_cast<std::size_t>(stream.peer)]);
  }
}

}  // namespace abtrain::comm
