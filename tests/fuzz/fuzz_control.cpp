// Frames of the control channel, as they come from another process.
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "base/socket.h"
#include "comm/control/wire.h"
#include "target.h"

namespace abtrain::fuzz {

using namespace std::string_literals;

const std::vector<std::string> kWords = {
    "\0\0\0\0\x01\0\0\0"s,
    "\x05\0\0\0\0\0\0\0"s,
    "\x07\0\0\0"s,
    "\x08\0\0\0\0\0\0\0"s,
    std::string(16, '\0'),
    std::string(16, '\xff'),
    "\x04\0\0\0\0\0\0\0"s
    "host"s};

void read_input(std::string_view input) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) {
    return;
  }
  const Socket reader(ends[0]);
  // What does not fit is as if the other had died there.
  [[maybe_unused]] const ssize_t sent =
      ::send(ends[1], input.data(), input.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::close(ends[1]);
  std::string all;
  while (const auto message = comm::wire::receive(reader)) {
    all += static_cast<char>('a' + static_cast<int>(message->type) % 16);
  }
  outcome() = all;
}

}  // namespace abtrain::fuzz
