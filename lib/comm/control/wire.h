// The messages between the processes of a control channel: a header and, for some types, a text.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/socket.h"

namespace abtrain::comm::wire {

enum class Type : std::uint32_t {
  // For the meeting (comm/control/meeting.h). value: the run's token.
  Hello,      // text: who is joining
  Challenge,  // from worker 0: prove that you have the secret
  Proof,
  Welcome,  // from worker 0; text: host
  Refused,  // text: why

  Shared,   // from worker 0 to all; text: the bytes
  Stop,     // to worker 0: the sender wants all to stop
  Ask,      // from worker 0: how many steps have you begun?
  Begun,    // to worker 0; value: steps begun
  StopAt,   // from worker 0; value: step at which all stop
  Spent,    // to worker 0; value: steps done; text: a comm::Spent
  Vote,     // to worker 0; value: exit code or 0; text: message
  Verdict,  // from worker 0; rank: a worker with an error; value and text: as in Vote
  Failed,   // rank: the failed worker; value: exit code; text: message
  Bye       // value: steps, as in Begun; from worker 0, once all have said it: you may end
};

struct Message {
  Type type;
  int rank;
  std::int64_t value = 0;
  std::string text = {};
};

// Returns the bytes of a value, to be sent as a message's text.
template <class T>
std::string bytes_of(const T& value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

// Reads the value at the beginning of a text.
template <class T>
std::optional<T> read_as(const std::string& text) {
  if (text.size() < sizeof(T)) {
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, text.data(), sizeof(value));
  return value;
}

// Separates the workers' texts in a Verdict; a path may contain any other character.
constexpr char kBetweenTexts = '\0';
constexpr std::size_t kMaxTextLength = 1 << 20;      // of any message but a Verdict
constexpr std::size_t kMaxVerdictLength = 64 << 20;  // the texts of all workers

// Sends a message. Cuts the text of an error that is too long; any other text must fit. Returns
// false if the other end is gone or does not read in time: it may then have received a part, so the
// connection is of no further use.
bool send(const Socket& socket, const Message& message, double seconds = 30);

// Takes messages off a connection as their bytes arrive, and never blocks.
class Inbox {
 public:
  enum class State {
    Waiting,   // for more bytes
    Ready,     // take() returns a message
    Gone,      // the other end is gone
    Nonsense,  // not a message, or an unexpected one
  };
  // Returns whether a message is expected. Called before its text has been read.
  using Check = std::function<bool(const Message&)>;

  // Reads the bytes that have arrived. Call it again after Waiting, and after take().
  State read(const Socket& socket, const Check& expected = {});
  Message take();

 private:
  std::array<char, 24> header_;
  std::optional<Message> message_;
  std::size_t have_ = 0;  // bytes of the header, then of the text
};

// Waits for one message. Returns nothing if the other end is gone, sends something other than an
// expected message, or sends nothing in time.
std::optional<Message> receive(
    const Socket& socket, double seconds = std::numeric_limits<double>::infinity(),
    const Inbox::Check& expected = {});

}  // namespace abtrain::comm::wire
