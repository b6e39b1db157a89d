#include "comm/control/state.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/exit_codes.h"

namespace abtrain::comm {

namespace {

using wire::Message;
using wire::Type;

// Codes that error_of() accepts: those from 127 on say how a process ended.
bool is_error(std::int64_t code) {
  return code > 0 && code < 127 &&
         std::ranges::any_of(kExitCodes, [&](const ExitCode& known) { return known.code == code; });
}

}  // namespace

std::exception_ptr error_of(std::int64_t code, const std::string& text) {
  if (code == 1) {
    return std::make_exception_ptr(std::runtime_error(text));
  }
  return std::make_exception_ptr(Error(static_cast<ErrorKind>(code), text));
}

ControlChannel::State::State(ControlOptions given)
    : options(std::move(given)),
      met(wire::meet(options)),
      inboxes(met.sockets.size()),
      left(static_cast<std::size_t>(options.size)),
      begun_of(static_cast<std::size_t>(options.size)),
      votes(static_cast<std::size_t>(options.size)),
      board(options.size) {
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

// The thread's body: runs until all connections have ended.
void ControlChannel::State::serve() {
  for (;;) {
    std::vector<pollfd> waits;  // poll() skips those with -1
    {
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < met.sockets.size(); ++i) {
        waits.push_back({left[i] ? -1 : met.sockets[i].file(), POLLIN, 0});
      }
    }
    if (std::ranges::count(waits, -1, &pollfd::fd) == std::ssize(waits)) {
      return;
    }
    if (::poll(waits.data(), waits.size(), -1) < 0) {
      continue;  // a signal
    }
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents == 0) {
        continue;
      }
      // This never waits for the rest of a message.
      const auto state =
          inboxes[i].read(met.sockets[i], [&](const Message& m) { return is_sound(m, i); });
      if (state == wire::Inbox::State::Waiting) {
        continue;
      }
      std::optional<Message> message;
      if (state == wire::Inbox::State::Ready) {
        message = inboxes[i].take();
        if (is_hub()) {
          handle_at_hub(*message);
        } else {
          handle(*message);
        }
      } else {
        lost(
            i, state == wire::Inbox::State::Gone
                   ? " is gone: its process has ended, or its host is down or "
                     "does not answer"
                   : " is gone: it sent an invalid message, and its "
                     "connection was closed");
        ::shutdown(met.sockets[i].file(), SHUT_RDWR);
      }
      if (!message || message->type == Type::Bye) {
        const std::lock_guard lock(mutex);
        left[i] = true;
        changed.notify_all();
      }
    }
  }
}

// Whether the other end of a connection may send this message.
bool ControlChannel::State::is_sound(const Message& message, std::size_t connection) const {
  const auto rank = static_cast<std::size_t>(message.rank);
  if (is_hub() ? rank != connection : message.rank >= options.size) {
    return false;
  }
  switch (message.type) {
    case Type::Stop:
      return is_hub();
    case Type::Begun:
    case Type::Spent:
    case Type::Bye:
      return is_hub() && message.value >= 0;
    case Type::Vote:
      return is_hub() && (message.value == 0 || is_error(message.value));
    case Type::Failed:
      return is_error(message.value);
    case Type::Ask:
    case Type::Shared:
      return !is_hub();
    case Type::StopAt:
      return !is_hub() && message.value >= 0;
    case Type::Verdict:
      return !is_hub() && (message.value == 0 || is_error(message.value));
    default:
      return false;
  }
}

void ControlChannel::State::lost(std::size_t connection, const char* why) {
  {
    const std::lock_guard lock(mutex);
    if (closing) {
      return;
    }
  }
  const int rank = is_hub() ? static_cast<int>(connection) : 0;
  const Message message{
      Type::Failed, rank, static_cast<std::int64_t>(ErrorKind::PeerLost), name_of(rank) + why};
  if (is_hub()) {
    to_others(message);
  }
  take_failure(message, true);
}

// serve() reports a connection that is lost or that nobody reads any more.
void ControlChannel::State::post(std::size_t connection, const Message& message) {
  const std::lock_guard lock(send_mutex);
  const Socket& socket = met.sockets[connection];
  if (socket.is_open() && !wire::send(socket, message, options.send_timeout)) {
    ::shutdown(socket.file(), SHUT_RDWR);
  }
}

void ControlChannel::State::to_hub(const Message& message) {
  if (is_hub()) {
    handle_at_hub(message);
  } else {
    post(0, message);
  }
}

void ControlChannel::State::to_others(const Message& message) {
  for (std::size_t i = 1; i < met.sockets.size(); ++i) {
    post(i, message);
  }
}

void ControlChannel::State::to_all(const Message& message) {
  to_others(message);
  handle(message);
}

void ControlChannel::State::handle_at_hub(const Message& message) {
  const std::lock_guard hub(hub_mutex);
  const auto from = static_cast<std::size_t>(message.rank);
  const auto all_there = [](const auto& list) {
    return std::ranges::all_of(list, [](const auto& entry) { return entry.has_value(); });
  };
  switch (message.type) {
    case Type::Stop:
      if (!std::exchange(asked, true)) {
        to_all({Type::Ask, 0});
      }
      return;
    case Type::Begun:
    case Type::Bye:  // it could not answer a later Ask
      begun_of[from] = message.value;
      if (all_there(begun_of) && !std::exchange(decided, true)) {
        to_all({Type::StopAt, 0, **std::ranges::max_element(begun_of)});
      }
      return;
    case Type::Vote:
      votes[from] = message;
      if (all_there(votes)) {
        const auto worst =
            std::ranges::find_if(votes, [](const auto& vote) { return vote->value != 0; });
        Message result{Type::Verdict, 0};
        if (worst != votes.end()) {
          result = **worst;
          result.type = Type::Verdict;
        } else {
          std::vector<std::string> texts;
          for (const auto& vote : votes) {
            texts.push_back(vote->text);  // one line each
            std::ranges::replace(texts.back(), '\n', ' ');
          }
          result.text = join(texts, "\n");
        }
        std::ranges::fill(votes, std::nullopt);
        if (result.value != 0) {
          // Whoever hears of it may be gone before this worker does.
          const std::lock_guard lock(mutex);
          closing = true;
        }
        to_all(result);
      }
      return;
    case Type::Spent:
      // Other lengths and values are nonsense, but nothing depends on them.
      if (const auto spent = wire::read_as<Spent>(message.text);
          message.text.size() == sizeof(Spent) &&
          std::ranges::all_of(*spent, [](double s) { return std::isfinite(s); })) {
        board.post(message.rank, message.value, *spent);
      }
      return;
    case Type::Failed:
    case Type::Shared:
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
    case Type::Shared:
      if (!is_hub()) {
        shared.push_back(message.text);
      }
      break;
    case Type::Failed:
      lock.unlock();
      take_failure(message, false);
      return;
    default:
      return;
  }
  changed.notify_all();
}

void ControlChannel::State::take_failure(const Message& message, bool is_gone) {
  if (message.rank == options.rank) {
    return;  // it knows
  }
  const auto cause = error_of(message.value, message.text);
  {
    const std::lock_guard lock(mutex);
    if (closing || !failure.set(cause)) {
      return;  // at the end of the run, or an echo
    }
    changed.notify_all();
  }
  if (options.on_failure) {
    options.on_failure(cause, is_gone ? message.rank : -1);
  }
}

}  // namespace abtrain::comm
