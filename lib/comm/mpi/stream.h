// A sequence of bytes to or from one peer, sent in order as pieces, one message each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>

#include "base/error.h"
#include "comm/mpi/table.h"

namespace abtrain::comm {

// A communicator and the MPI that it belongs to.
struct MpiComm {
  const MpiTable* mpi = nullptr;
  MpiHandle handle = nullptr;
};

// Throws Error(PeerLost) with MPI's own message unless `code` is 0.
inline void check_mpi(const MpiTable& mpi, int code, const char* call) {
  if (code != 0) {
    std::string text(static_cast<std::size_t>(mpi.text_bytes), '\0');
    mpi.error_text(code, text.data());
    throw Error(ErrorKind::PeerLost, formatted("{}: {}", call, text.c_str()));
  }
}

constexpr std::int64_t kPieceBytes = 256 << 10;
constexpr std::int64_t kWindow = 4;  // pieces under way at a time

class MpiStream {
 public:
  enum class Way { Send, Receive };
  const int peer;
  const std::int64_t bytes;
  // `ring`: size in bytes of a ring buffer at `data` that the pieces use in turn; 0: all pieces lie
  // at `data` one after another.
  MpiStream(
      Way way, MpiComm comm, int to, int tag, char* data, std::int64_t length,
      std::int64_t ring = 0)
      : peer(to), bytes(length), way_(way), comm_(comm), tag_(tag), data_(data), ring_(ring) {}

  // Lets post() post only pieces that end within the first `count` bytes; without this call, it may
  // post all.
  void allow(std::int64_t count) {
    allowed_ = count;
  }
  // Posts the pieces that may be posted, and returns whether there were any. Throws Error.
  bool post() {
    bool moved = false;
    while (posted_ < bytes && static_cast<std::int64_t>(under_way_.size()) < kWindow &&
           end_of_piece(posted_) <= allowed_) {
      char* place = data_ + (ring_ > 0 ? posted_ % ring_ : posted_);
      const int count = static_cast<int>(end_of_piece(posted_) - posted_);
      const bool sends = way_ == Way::Send;
      under_way_.push_back(nullptr);
      check_mpi(
          *comm_.mpi,
          comm_.mpi->post(sends, place, count, peer, tag_, comm_.handle, &under_way_.back()),
          sends ? "MPI_Isend" : "MPI_Irecv");
      posted_ += count;
      moved = true;
    }
    return moved;
  }
  // waits(): whether a message is under way. oldest(): the oldest such message. Call
  // oldest_is_through() once that message has completed.
  bool waits() const {
    return !under_way_.empty();
  }
  MpiHandle oldest() const {
    return under_way_.front();
  }
  void oldest_is_through() {
    under_way_.pop_front();
    finished_ = end_of_piece(finished_);
  }
  // The number of bytes from the beginning that have completed.
  std::int64_t finished() const {
    return finished_;
  }
  bool done() const {
    return finished_ == bytes;
  }

 private:
  std::int64_t end_of_piece(std::int64_t begin) const {
    return std::min(begin + kPieceBytes, bytes);
  }

  Way way_;
  MpiComm comm_;
  int tag_;
  char* data_;
  std::int64_t ring_;
  std::int64_t allowed_ = bytes;
  std::int64_t posted_ = 0;
  std::int64_t finished_ = 0;
  std::deque<MpiHandle> under_way_;
};

}  // namespace abtrain::comm
