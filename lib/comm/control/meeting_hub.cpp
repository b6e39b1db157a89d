// Worker 0's side of a meeting.
#include <poll.h>

#include <algorithm>
#include <list>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/control/meeting_frames.h"

namespace abtrain::comm::wire {

namespace {

// Unidentified connections to keep besides one per worker; beyond that, the oldest is dropped.
constexpr std::size_t kMaxStrangers = 64;

constexpr int kCheckMilliseconds = 200;  // between two calls of options.check()

// A connection that has not been accepted as a worker of the run (yet).
struct Guest {
  Socket socket;
  Inbox inbox = {};
  std::optional<Message> hello = {};  // set once the guest has shown the token
  Nonce nonce = {};                   // set once the guest is challenged
};

class Welcoming {
 public:
  Welcoming(const MeetOptions& options, const Meeting& meeting, const Socket& listener)
      : options_(options), meeting_(meeting), listener_(listener), left_(options.size - 1) {
    const auto size = static_cast<std::size_t>(options.size);
    met_.sockets.resize(size);
    met_.hosts.resize(size);
    met_.hosts[0] = host_name();
    processes_.resize(size);
  }

  // Reads all connections as their bytes arrive, so that a slow guest does not delay the others.
  Connections run() {
    const Deadline deadline(options_.connect_timeout);
    while (left_ > 0) {
      options_.check();
      std::vector<pollfd> waits{{listener_.get(), POLLIN, 0}};
      for (const Guest& guest : guests_) {
        waits.push_back({guest.socket.get(), POLLIN, 0});
      }
      const int ready = ::poll(
          waits.data(), waits.size(), std::min(deadline.milliseconds_left(), kCheckMilliseconds));
      ABT_CHECK(
          !deadline.has_passed(), PeerLost,
          "{} of {} workers did not connect to worker 0 on {} within {} s: {}", left_,
          options_.size, met_.hosts[0], options_.connect_timeout, missing());
      if (ready < 0) {
        continue;  // interrupted by a signal
      }
      auto guest = guests_.begin();
      for (std::size_t k = 1; k < waits.size(); ++k) {
        const bool goes = waits[k].revents != 0 && !hear(*guest);
        guest = goes ? guests_.erase(guest) : std::next(guest);
      }
      if (waits[0].revents != 0) {
        accept();
      }
    }
    return std::move(met_);
  }

 private:
  void accept() {
    Socket socket = listener_.accept();
    if (!socket.is_open()) {
      // The connection has already ended, or the process is out of file descriptors. The open
      // connections are served in the meantime.
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return;
    }
    guests_.push_back({std::move(socket)});
    if (!hear(guests_.back())) {
      guests_.pop_back();
    }
    if (guests_.size() > kMaxStrangers + met_.sockets.size()) {
      // Drop the oldest connection, preferably one without the token, but never the newest.
      const auto newest = std::prev(guests_.end());
      const auto oldest =
          std::find_if(guests_.begin(), newest, [](const Guest& g) { return !g.hello; });
      guests_.erase(oldest == newest ? guests_.begin() : oldest);
    }
  }

  std::string missing() const {
    std::vector<std::string> ranks;
    for (std::size_t rank = 1; rank < met_.sockets.size(); ++rank) {
      if (!met_.sockets[rank].is_open() && ranks.size() < 20) {
        ranks.push_back(formatted("{}", rank));
      }
    }
    return formatted(
        "{}{}{}", ranks.size() == 1 ? "rank " : "ranks ", abtrain::join(ranks, ", "),
        static_cast<std::size_t>(left_) > ranks.size() ? ", ..." : "");
  }

  // Returns false once the guest is welcomed or to be dropped.
  bool hear(Guest& guest) {
    const auto state = guest.inbox.read(guest.socket, [&](const Message& message) {
      return message.value == meeting_.token &&
             (guest.hello ? message.type == Type::Proof || message.type == Type::Refused
                          : message.type == Type::Hello);
    });
    if (state != Inbox::State::Ready) {
      return state == Inbox::State::Waiting;
    }
    const Message message = guest.inbox.take();
    if (!guest.hello) {
      guest.hello = message;
      return take_hello(guest);
    }
    ABT_CHECK(message.type != Type::Refused, Config, "{}", printable(message.text));
    const auto mac = read_as<Mac>(message.text);
    if (mac &&
        options_.secret.matches(transcript(kWorker, meeting_, *guest.hello, guest.nonce), *mac)) {
      welcome(guest);
    }
    return false;
  }

  bool take_hello(Guest& guest) {
    const auto greeting = read_as<Greeting>(guest.hello->text);
    if (!greeting) {
      return false;
    }
    const int rank = guest.hello->rank;
    const std::string who =
        formatted("worker {} on {}", rank, printable(guest.hello->text.substr(sizeof(Greeting))));
    if (greeting->size != options_.size) {
      give_up(
          guest, formatted(
                     "{} was started as one of {} processes, but worker 0 on {} as one "
                     "of {}",
                     who, greeting->size, met_.hosts[0], options_.size));
    }
    if (rank == 0 || rank >= options_.size) {
      answer(
          guest, Type::Refused,
          formatted("expected a rank from 1 to {}, got {}", options_.size - 1, rank));
      return false;
    }
    if ((greeting->is_sealed != 0) != options_.secret.is_set()) {
      const std::string hub = formatted("worker 0 on {}", met_.hosts[0]);
      const bool hub_has = options_.secret.is_set();
      give_up(
          guest, formatted(
                     "{} has a secret (ABTRAIN_SECRET, ABTRAIN_SECRET_FILE), {} has "
                     "none: expected the same secret for all processes",
                     hub_has ? hub : who, hub_has ? who : hub));
    }
    if (options_.secret.is_set()) {
      challenge(guest);
      return true;
    }
    welcome(guest);
    return false;
  }

  void challenge(Guest& guest) const {
    fill_random(guest.nonce.data(), guest.nonce.size());
    const Challenge challenge{
        guest.nonce, options_.secret.mac_of(transcript(kHub, meeting_, *guest.hello, guest.nonce))};
    answer(guest, Type::Challenge, bytes_of(challenge));
  }

  void welcome(Guest& guest) {
    const auto rank = static_cast<std::size_t>(guest.hello->rank);
    const auto greeting = *read_as<Greeting>(guest.hello->text);
    const bool has_come = met_.sockets[rank].is_open();
    // A process that received an answer too late connects again.
    if (has_come && processes_[rank] != greeting.process) {
      answer(
          guest, Type::Refused,
          formatted(
              "a process on {} has rank {} already: expected each rank from 0 to "
              "{} once",
              met_.hosts[rank], rank, options_.size - 1));
      return;
    }
    answer(guest, Type::Welcome, met_.hosts[0]);
    left_ -= has_come ? 0 : 1;
    processes_[rank] = greeting.process;
    met_.hosts[rank] = printable(guest.hello->text.substr(sizeof(Greeting)));
    met_.sockets[rank] = std::move(guest.socket);
  }

  void answer(const Guest& guest, Type type, const std::string& text) const {
    // If this fails, the next read finds that the connection is gone.
    send(guest.socket, {type, 0, meeting_.token, text}, kAnswerSeconds);
  }

  // Ends the meeting: worker 0 and this guest cannot begin a run together.
  [[noreturn]] void give_up(const Guest& guest, const std::string& why) const {
    answer(guest, Type::Refused, why);
    throw Error(ErrorKind::Config, why);
  }

  const MeetOptions& options_;
  const Meeting& meeting_;
  const Socket& listener_;
  Connections met_;
  std::vector<std::array<unsigned char, 16>> processes_;
  std::list<Guest> guests_;  // oldest first
  int left_;                 // workers that have not come yet
};

}  // namespace

Connections welcome(const MeetOptions& options, const Meeting& meeting, const Socket& listener) {
  return Welcoming(options, meeting, listener).run();
}

}  // namespace abtrain::comm::wire
