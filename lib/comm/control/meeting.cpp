#include "comm/control/meeting.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/control/meeting_frames.h"

namespace abtrain::comm::wire {

namespace {

// Seconds to wait for an answer at one address if worker 0 has several addresses.
constexpr double kTurnSeconds = 5;
Meeting invite(const Socket& listener, const std::string& address) {
  Meeting meeting;
  fill_random(&meeting.token, sizeof(meeting.token));
  meeting.port = listener.port();
  std::string text;
  for (const std::string& one : address.empty() ? own_addresses() : std::vector{address}) {
    const std::string more = (text.empty() ? "" : " ") + one;
    if (text.size() + more.size() < meeting.addresses.size()) {
      text += more;
    }
  }
  text.copy(meeting.addresses.data(), text.size());
  return meeting;
}

class Joining {
 public:
  explicit Joining(const MeetOptions& options, const Meeting& meeting)
      : options_(options),
        meeting_(meeting),
        who_(formatted("worker {} on {}", options.rank, host_name())) {
    fill_random(process_.data(), process_.size());
  }

  Connections run() {
    const Deadline deadline(options_.connect_timeout);
    const char* text = meeting_.addresses.data();
    const auto addresses = split_text({text, ::strnlen(text, meeting_.addresses.size())}, ' ');
    ABT_CHECK(
        *text != '\0' && meeting_.port > 0 && meeting_.port < 65536, PeerLost,
        "{}: received no valid address for worker 0", who_);
    do {
      options_.check();
      for (const std::string& address : addresses) {
        const double left = deadline.seconds_left();
        // At most 1 s, because an address in another network may drop packets silently.
        Socket socket = Socket::connect(address, meeting_.port, std::min(left, 1.0));
        const auto host =
            socket.is_open()
                ? greet(socket, addresses.size() == 1 ? left : std::min(left, kTurnSeconds))
                : std::nullopt;
        if (host) {
          Connections one;
          one.hosts.resize(static_cast<std::size_t>(options_.size));
          one.hosts[0] = *host;
          one.sockets.push_back(std::move(socket));
          return one;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    } while (!deadline.has_passed());
    throw Error(
        ErrorKind::PeerLost,
        formatted(
            "{} could not reach worker 0 at port {} of any of its addresses ({}) "
            "within {} s: is there a firewall between the hosts?",
            who_, meeting_.port, printable(abtrain::join(addresses, ", ")),
            options_.connect_timeout));
  }

 private:
  // Receives worker 0's reply, recognized by its token. Somebody else may answer: another host may
  // use one of worker 0's addresses for its own network bridge, and a connection to a port of this
  // host where nobody listens can connect to itself.
  std::optional<Message> hear(const Socket& socket, double seconds) const {
    return receive(socket, seconds, [&](const Message& message) {
      return message.value == meeting_.token && message.rank == 0 &&
             (message.type == Type::Challenge || message.type == Type::Welcome ||
              message.type == Type::Refused);
    });
  }

  Message answer(const Socket& socket, const Message& hello, const Message& reply) const {
    const auto challenge = read_as<Challenge>(reply.text);
    if (!challenge || !options_.secret.matches(
                          transcript(kHub, meeting_, hello, challenge->nonce), challenge->mac)) {
      const std::string why = formatted(
          "{} and worker 0 do not have the same secret (ABTRAIN_SECRET, "
          "ABTRAIN_SECRET_FILE), or somebody else answered in its place",
          who_);
      send(socket, {Type::Refused, options_.rank, meeting_.token, why}, kAnswerSeconds);
      throw Error(ErrorKind::Config, why);
    }
    return {
        Type::Proof, options_.rank, meeting_.token,
        bytes_of(options_.secret.mac_of(transcript(kWorker, meeting_, hello, challenge->nonce)))};
  }

  // Returns the name of worker 0's host if worker 0 has welcomed this worker.
  std::optional<std::string> greet(const Socket& socket, double seconds) const {
    const Deadline deadline(seconds);
    const bool is_sealed = options_.secret.is_set();
    Greeting greeting{options_.size, is_sealed, process_, {}};
    fill_random(greeting.nonce.data(), greeting.nonce.size());
    const Message hello{
        Type::Hello, options_.rank, meeting_.token, bytes_of(greeting) + host_name()};
    bool sent = send(socket, hello, deadline.seconds_left());
    auto reply = sent ? hear(socket, deadline.seconds_left()) : std::nullopt;
    if (is_sealed && reply && reply->type == Type::Challenge) {
      sent = send(socket, answer(socket, hello, *reply), deadline.seconds_left());
      reply = sent ? hear(socket, deadline.seconds_left()) : std::nullopt;
    } else if (is_sealed && reply && reply->type == Type::Welcome) {
      return std::nullopt;  // the real worker 0 would have sent a Challenge first
    }
    ABT_CHECK(
        !reply || reply->type != Type::Refused, Config, "{} was refused: {}", who_,
        printable(reply->text));
    if (!reply || reply->type != Type::Welcome) {
      return std::nullopt;
    }
    return printable(reply->text);
  }

  const MeetOptions& options_;
  const Meeting& meeting_;
  std::string who_;
  std::array<unsigned char, 16> process_;
};

}  // namespace

Connections meet(const MeetOptions& options) {
  Meeting meeting;
  Socket listener;
  if (options.rank == 0) {
    listener = Socket::listen(options.address);
    meeting = invite(listener, options.address);
  }
  options.share(&meeting, sizeof(meeting));
  return options.rank == 0 ? welcome(options, meeting, listener) : Joining(options, meeting).run();
}

}  // namespace abtrain::comm::wire
