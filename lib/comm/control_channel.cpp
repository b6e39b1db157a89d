#include "comm/control_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/control_wire.h"
#include "comm/failure.h"

namespace abtrain::comm {

namespace {

using wire::Message;
using wire::Type;

// The error that a code stands for; 1, an internal one, has no kind.
std::exception_ptr error_of(std::int64_t code, const std::string& text) {
  if (code == 1) {
    return std::make_exception_ptr(std::runtime_error(text));
  }
  return std::make_exception_ptr(Error(static_cast<ErrorKind>(code), text));
}

}  // namespace

struct ControlChannel::State {
  explicit State(ControlOptions given);
  ~State();

  bool is_hub() const {
    return options.rank == 0;
  }
  std::string name_of(int rank) const {
    const std::string& host = met.hosts[static_cast<std::size_t>(rank)];
    return str("worker ", rank, host.empty() ? "" : " on ", host);
  }
  void serve();
  void handle(const Message& message);         // from worker 0, or itself
  void handle_at_hub(const Message& message);  // at worker 0, from any
  void lost(std::size_t connection);
  void to_hub(const Message& message);
  void to_all(const Message& message);
  void take_failure(int rank, std::int64_t code, const std::string& text);

  ControlOptions options;
  wire::Connections met;

  std::mutex send_mutex;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::int64_t begun = 0;
  bool asked_for_stop = false;  // this worker has told worker 0
  bool holding = false;         // has answered, waits for the decision
  std::int64_t stop_at = -1;
  std::int64_t verdicts = 0;
  Message verdict{Type::Verdict, 0};
  std::vector<bool> left;  // that said goodbye or are gone
  bool closing = false;
  Failure failure;

  // Worker 0's own, touched under hub_mutex.
  std::recursive_mutex hub_mutex;
  bool asked = false;
  bool decided = false;
  std::vector<std::optional<std::int64_t>> begun_of;
  std::vector<std::optional<Message>> votes;

  std::jthread thread;
};

ControlChannel::State::State(ControlOptions given)
    : options(std::move(given)),
      met(wire::meet(
          options.rank, options.size, options.share, options.connect_timeout)),
      left(static_cast<std::size_t>(options.size)),
      begun_of(static_cast<std::size_t>(options.size)),
      votes(static_cast<std::size_t>(options.size)) {
  thread = std::jthread([this] { serve(); });
}

ControlChannel::State::~State() {
  {
    const std::lock_guard lock(mutex);
    closing = true;
  }
  for (const Socket& socket : met.sockets) {
    if (socket.is_open()) {
      ::shutdown(socket.file(), SHUT_RDWR);  // wakes the thread
    }
  }
}

// The thread: until all connections have ended.
void ControlChannel::State::serve() {
  for (;;) {
    std::vector<pollfd> waits;
    std::vector<std::size_t> indices;
    {
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < met.sockets.size(); ++i) {
        if (met.sockets[i].is_open() && !left[i]) {
          waits.push_back({met.sockets[i].file(), POLLIN, 0});
          indices.push_back(i);
        }
      }
    }
    if (waits.empty()) {
      return;
    }
    if (::poll(waits.data(), waits.size(), -1) < 0) {
      continue;  // a signal
    }
    for (std::size_t k = 0; k < waits.size(); ++k) {
      if (waits[k].revents == 0) {
        continue;
      }
      auto message = wire::receive(met.sockets[indices[k]]);
      if (message && is_hub()) {
        message->rank = static_cast<int>(indices[k]);
      }
      if (!message || message->type == Type::Bye) {
        if (!message) {
          lost(indices[k]);
        } else if (is_hub()) {
          handle_at_hub(*message);
        }
        const std::lock_guard lock(mutex);
        left[indices[k]] = true;
        changed.notify_all();
      } else if (is_hub()) {
        handle_at_hub(*message);
      } else {
        handle(*message);
      }
    }
  }
}

void ControlChannel::State::lost(std::size_t connection) {
  {
    const std::lock_guard lock(mutex);
    if (closing) {
      return;
    }
  }
  const int rank = is_hub() ? static_cast<int>(connection) : 0;
  const Message message{
      Type::Failed,
      rank,
      static_cast<std::int64_t>(ErrorKind::PeerLost),
      name_of(rank) + " is gone: its process has ended or its host is down"};
  if (is_hub()) {
    handle_at_hub(message);
  } else {
    handle(message);
  }
}

void ControlChannel::State::to_hub(const Message& message) {
  if (is_hub()) {
    handle_at_hub(message);
  } else {
    const std::lock_guard lock(send_mutex);
    // A lost connection is told by serve().
    wire::send(met.sockets[0], message);
  }
}

void ControlChannel::State::to_all(const Message& message) {
  for (std::size_t i = 1; i < met.sockets.size(); ++i) {
    const std::lock_guard lock(send_mutex);
    wire::send(met.sockets[i], message);
  }
  handle(message);
}

void ControlChannel::State::handle_at_hub(const Message& message) {
  const std::lock_guard hub(hub_mutex);
  const auto from = static_cast<std::size_t>(message.rank);
  const auto all_there = [](const auto& list) {
    return std::ranges::all_of(
        list, [](const auto& entry) { return entry.has_value(); });
  };
  switch (message.type) {
    case Type::Stop:
      if (!std::exchange(asked, true)) {
        to_all({Type::Ask, 0});
      }
      return;
    case Type::Begun:
    case Type::Bye:  // it will not be heard when somebody asks later
      begun_of[from] = message.value;
      if (all_there(begun_of) && !std::exchange(decided, true)) {
        to_all({Type::StopAt, 0, **std::ranges::max_element(begun_of)});
      }
      return;
    case Type::Vote:
      votes[from] = message;
      if (all_there(votes)) {
        const auto worst = std::ranges::find_if(
            votes, [](const auto& vote) { return vote->value != 0; });
        Message result{Type::Verdict, 0};
        if (worst != votes.end()) {
          result = **worst;
          result.type = Type::Verdict;
        } else {
          std::vector<std::string> texts;
          for (const auto& vote : votes) {
            texts.push_back(vote->text);
          }
          result.text = join(texts, "\n");
        }
        std::ranges::fill(votes, std::nullopt);
        to_all(result);
      }
      return;
    case Type::Failed:
      to_all(message);
      return;
    default:
      return;
  }
}

void ControlChannel::State::handle(const Message& message) {
  std::unique_lock lock(mutex);
  switch (message.type) {
    case Type::Ask: {
      holding = true;
      const Message answer{Type::Begun, options.rank, begun};
      lock.unlock();
      to_hub(answer);
      return;
    }
    case Type::StopAt:
      stop_at = message.value;
      break;
    case Type::Verdict:
      closing = closing || message.value != 0;
      verdict = message;
      ++verdicts;
      break;
    case Type::Failed:
      lock.unlock();
      take_failure(message.rank, message.value, message.text);
      return;
    default:
      return;
  }
  changed.notify_all();
}

void ControlChannel::State::take_failure(
    int rank,
    std::int64_t code,
    const std::string& text) {
  if (rank == options.rank) {
    return;  // it knows
  }
  const auto cause = error_of(code, text);
  {
    const std::lock_guard lock(mutex);
    if (closing || !failure.set(cause)) {
      return;  // the end, or an echo
    }
    changed.notify_all();
  }
  if (options.on_failure) {
    options.on_failure(cause);
  }
}

ControlChannel::ControlChannel(ControlOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
ControlChannel::~ControlChannel() = default;

bool ControlChannel::stop_before(int, std::int64_t t) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  s.begun = std::max(s.begun, t);
  if (!s.asked_for_stop && s.stop_at < 0 && s.options.wanted()) {
    s.asked_for_stop = true;
    lock.unlock();
    s.to_hub({Type::Stop, s.options.rank});
    lock.lock();
  }
  s.changed.wait(lock, [&] {
    return !s.holding || s.stop_at >= 0 || s.failure.happened();
  });
  s.failure.throw_if_happened();
  if (s.stop_at >= 0 && t >= s.stop_at) {
    return true;
  }
  s.begun = std::max(s.begun, t + 1);
  return false;
}

std::vector<std::string> ControlChannel::agree(
    std::exception_ptr mine,
    const std::string& text) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  const std::int64_t before = s.verdicts;
  lock.unlock();
  const bool failed = mine != nullptr;
  s.to_hub(
      {Type::Vote,
       s.options.rank,
       failed ? exit_code_of(mine) : 0,
       failed ? message_of(mine) : text});
  lock.lock();
  s.changed.wait(
      lock, [&] { return s.verdicts > before || s.failure.happened(); });
  s.failure.throw_if_happened();
  const Message verdict = s.verdict;
  lock.unlock();
  if (verdict.value == 0) {
    return split_text(verdict.text, '\n');
  }
  if (verdict.rank == s.options.rank) {
    std::rethrow_exception(mine);
  }
  std::rethrow_exception(error_of(
      verdict.value,
      str(s.is_hub() ? s.name_of(verdict.rank) : str("worker ", verdict.rank),
          ": ",
          verdict.text)));
}

void ControlChannel::fail(const std::exception_ptr& cause) noexcept {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->failure.happened()) {
      return;
    }
    state_->closing = true;  // the others end now: no failures of their own
  }
  try {
    state_->to_hub(
        {Type::Failed,
         state_->options.rank,
         exit_code_of(cause),
         str("worker ",
             state_->options.rank,
             " on ",
             host_name(),
             ": ",
             message_of(cause))});
  } catch (...) {
    // The end of the connection will tell them.
  }
}

std::exception_ptr ControlChannel::cause() const {
  return state_->failure.cause();
}

void ControlChannel::close() noexcept {
  State& s = *state_;
  if (!s.is_hub()) {
    std::int64_t begun = 0;
    {
      const std::lock_guard lock(s.mutex);
      s.closing = true;
      begun = s.begun;
    }
    const std::lock_guard lock(s.send_mutex);
    wire::send(s.met.sockets[0], {Type::Bye, s.options.rank, begun});
    return;
  }
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] {
    return s.failure.happened() ||
           std::count(s.left.begin() + 1, s.left.end(), false) == 0;
  });
  s.closing = true;
}

}  // namespace abtrain::comm
