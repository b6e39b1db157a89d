#include "comm/mpi/stream.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace abtrain::comm {

void check_mpi(const MpiTable& mpi, int code, const char* call) {
  if (code == 0) {
    return;
  }
  std::string text(static_cast<std::size_t>(mpi.text_bytes), '\0');
  mpi.error_text(code, text.data());
  throw Error(ErrorKind::PeerLost, formatted("{}: {}", call, text.c_str()));
}

MpiStream::MpiStream(
    Way way, MpiComm comm, int peer, int tag, char* data, std::int64_t bytes, std::int64_t ring)
    : way_(way), comm_(comm), peer_(peer), tag_(tag), data_(data), bytes_(bytes), ring_(ring) {}

std::int64_t MpiStream::end_of_piece(std::int64_t begin) const {
  return std::min(begin + kPieceBytes, bytes_);
}

void MpiStream::oldest_is_through() {
  under_way_.pop_front();
  finished_ = end_of_piece(finished_);
}

bool MpiStream::post() {
  bool moved = false;
  while (posted_ < bytes_ && static_cast<std::int64_t>(under_way_.size()) < kWindow &&
         end_of_piece(posted_) <= allowed_) {
    char* place = data_ + (ring_ > 0 ? posted_ % ring_ : posted_);
    const int count = static_cast<int>(end_of_piece(posted_) - posted_);
    under_way_.push_back(nullptr);
    MpiHandle* request = &under_way_.back();
    const MpiTable& mpi = *comm_.mpi;
    const bool sends = way_ == Way::Send;
    check_mpi(
        mpi, mpi.post(sends, place, count, peer_, tag_, comm_.handle, request),
        sends ? "MPI_Isend" : "MPI_Irecv");
    posted_ += count;
    moved = true;
  }
  return moved;
}

}  // namespace abtrain::comm
