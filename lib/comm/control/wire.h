// What the processes of a control channel send each other: frames of a header
// and, for some types, a text.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/socket.h"

namespace abtrain::comm::wire {

enum class Type : std::uint32_t {
  // Of the meeting (comm/control/meeting.h); value: token.
  Hello,      // text: who comes
  Challenge,  // from worker 0: prove that you have the secret
  Proof,
  Welcome,  // from worker 0; text: host
  Refused,  // text: why

  Shared,   // from worker 0, for all; text: bytes
  Stop,     // to worker 0: somebody wants to
  Ask,      // from worker 0: how many steps have you begun?
  Begun,    // value: steps
  StopAt,   // value: steps
  Vote,     // value: exit code or 0; text: message
  Verdict,  // rank: whose; value and text as above
  Failed,   // rank: whose; value: exit code; text: message
  Bye       // value: steps, as Begun
};

struct Message {
  Type type;
  int rank;
  std::int64_t value = 0;
  std::string text = {};
};

constexpr std::size_t kLongestText = 1 << 20;  // of any message

// Longer texts are cut. False where the other end is gone or does not read
// within the time: it may have got a part, so the connection is of no use then.
bool send(const Socket& socket, const Message& message, double seconds = 30);

// Takes messages off a connection as their bytes come, and never waits.
class Inbox {
 public:
  enum class State {
    Waiting,   // for more bytes
    Ready,     // take() gives the message
    Gone,      // the other end
    Nonsense,  // what came is no message, or not the expected one
  };
  // Sees a message whose text has not been read yet.
  using Check = std::function<bool(const Message&)>;

  // Call again after Waiting, and after take().
  State read(const Socket& socket, const Check& expected = {});
  Message take();

 private:
  std::array<char, 24> header_;
  std::optional<Message> message_;
  std::size_t have_ = 0;  // of the header, then of the text
};

// Nothing where the other end is gone, sends no message or nothing in time.
std::optional<Message> receive(
    const Socket& socket,
    double seconds = std::numeric_limits<double>::infinity(),
    const Inbox::Check& expected = {});

}  // namespace abtrain::comm::wire
