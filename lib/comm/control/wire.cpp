#include "comm/control/wire.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace abtrain::comm::wire {

namespace {

struct Header {
  std::uint32_t type;
  std::int32_t rank;
  std::int64_t value;
  std::uint64_t length;
};
static_assert(sizeof(Header) == 24);

std::size_t longest_text(Type type) {
  switch (type) {
    case Type::Hello:
    case Type::Challenge:
    case Type::Proof:
    case Type::Welcome:
    case Type::Refused:
      return 1024;
    case Type::Shared:
    case Type::Vote:
    case Type::Failed:
      return kMaxTextLength;
    case Type::Verdict:
      return kMaxVerdictLength;
    case Type::Spent:
      return 64;
    default:
      return 0;
  }
}

bool is_frame(const Header& header) {
  return header.type <= static_cast<std::uint32_t>(Type::Bye) && header.rank >= 0 &&
         header.length <= longest_text(static_cast<Type>(header.type));
}

}  // namespace

bool send(const Socket& socket, const Message& message, double seconds) {
  const std::string text = message.text.substr(0, longest_text(message.type));
  const Header header{
      static_cast<std::uint32_t>(message.type), message.rank, message.value, text.size()};
  return socket.send_all(bytes_of(header) + text, seconds);
}

Inbox::State Inbox::read(const Socket& socket, const Check& expected) {
  for (;;) {
    const std::size_t wanted = message_ ? message_->text.size() : sizeof(Header);
    if (have_ == wanted) {
      return message_ ? State::Ready : State::Nonsense;  // a rejected header
    }
    char* to = message_ ? message_->text.data() : header_.data();
    const auto got = socket.receive_some(to + have_, wanted - have_);
    if (!got) {
      return State::Gone;
    }
    if (*got == 0) {
      return State::Waiting;
    }
    have_ += *got;
    if (!message_ && have_ == sizeof(Header)) {
      const auto header = std::bit_cast<Header>(header_);
      if (!is_frame(header)) {
        return State::Nonsense;
      }
      Message message{static_cast<Type>(header.type), header.rank, header.value};
      if (expected && !expected(message)) {
        return State::Nonsense;
      }
      message.text.resize(header.length);
      message_ = std::move(message);
      have_ = 0;
    }
  }
}

Message Inbox::take() {
  have_ = 0;
  return *std::exchange(message_, std::nullopt);
}

std::optional<Message> receive(const Socket& socket, double seconds, const Inbox::Check& expected) {
  const Deadline deadline(seconds);
  Inbox inbox;
  for (;;) {
    const Inbox::State state = inbox.read(socket, expected);
    if (state == Inbox::State::Ready) {
      return inbox.take();
    }
    if (state != Inbox::State::Waiting || !socket.wait_readable(deadline)) {
      return std::nullopt;
    }
  }
}

}  // namespace abtrain::comm::wire
