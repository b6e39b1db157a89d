#include "comm/mpi/stream.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"

namespace abtrain::comm {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) {
    return;
  }
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(ErrorKind::PeerLost, formatted("{}: {}", call, text.data()));
}

MpiStream::MpiStream(
    Way way,
    MPI_Comm comm,
    int peer,
    int tag,
    char* data,
    std::int64_t bytes,
    std::int64_t ring)
    : way_(way),
      comm_(comm),
      peer_(peer),
      tag_(tag),
      data_(data),
      bytes_(bytes),
      ring_(ring) {}

std::int64_t MpiStream::end_of_piece(std::int64_t begin) const {
  return std::min(begin + kPieceBytes, bytes_);
}

void MpiStream::oldest_is_through() {
  under_way_.pop_front();
  finished_ = end_of_piece(finished_);
}

bool MpiStream::post() {
  bool moved = false;
  while (posted_ < bytes_ &&
         static_cast<std::int64_t>(under_way_.size()) < kWindow &&
         end_of_piece(posted_) <= allowed_) {
    char* place = data_ + (ring_ > 0 ? posted_ % ring_ : posted_);
    const int count = static_cast<int>(end_of_piece(posted_) - posted_);
    under_way_.push_back(MPI_REQUEST_NULL);
    MPI_Request* request = &under_way_.back();
    if (way_ == Way::Send) {
      check_mpi(
          MPI_Isend(place, count, MPI_BYTE, peer_, tag_, comm_, request),
          "MPI_Isend");
    } else {
      check_mpi(
          MPI_Irecv(place, count, MPI_BYTE, peer_, tag_, comm_, request),
          "MPI_Irecv");
    }
    posted_ += count;
    moved = true;
  }
  return moved;
}

}  // namespace abtrain::comm
