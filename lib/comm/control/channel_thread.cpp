// The thread of a control channel, and the sending and handling of messages.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"
#include "comm/control/channel.h"

namespace abtrain::comm {

namespace {

using wire::Message;
using wire::Type;

// True for the exit codes that error_of() accepts. Codes from 127 on do not stand for an Error.
bool is_error(std::int64_t code) {
  return code > 0 && code < 127 && std::ranges::find(kExitCodes, code) != kExitCodes.end();
}

}  // namespace

ControlChannel::ControlChannel(ControlOptions given)
    : Control(given.size),
      options_(std::move(given)),
      met_(wire::meet(options_)),
      inboxes_(met_.sockets.size()),
      patience_(options_.patience),
      left_(static_cast<std::size_t>(options_.size)),
      begun_of_(static_cast<std::size_t>(options_.size)),
      votes_(static_cast<std::size_t>(options_.size)) {
  thread_ = std::jthread([this] { serve(); });
}

ControlChannel::~ControlChannel() {
  closing_ = true;
  for (const Socket& socket : met_.sockets) {
    if (socket.is_open()) {
      ::shutdown(socket.get(), SHUT_RDWR);  // wakes the thread
    }
  }
}

// The thread's body: runs until all connections have ended.
void ControlChannel::serve() {
  for (;;) {
    std::vector<pollfd> waits;  // poll() skips entries with fd -1
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < met_.sockets.size(); ++i) {
        waits.push_back({left_[i] ? -1 : met_.sockets[i].get(), POLLIN, 0});
      }
    }
    if (std::ranges::count(waits, -1, &pollfd::fd) == std::ssize(waits)) {
      return;
    }
    if (::poll(waits.data(), waits.size(), -1) < 0) {
      continue;  // interrupted by a signal
    }
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents == 0) {
        continue;
      }
      // read() never waits for the rest of a message.
      const auto state =
          inboxes_[i].read(met_.sockets[i], [&](const Message& m) { return is_sound(m, i); });
      if (state == wire::Inbox::State::Waiting) {
        continue;
      }
      std::optional<Message> message;
      if (state == wire::Inbox::State::Ready) {
        message = inboxes_[i].take();
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
        ::shutdown(met_.sockets[i].get(), SHUT_RDWR);
      }
      if (!message || message->type == Type::Bye) {
        const std::lock_guard lock(mutex_);
        left_[i] = true;
        changed_.notify_all();
      }
    }
  }
}

// Whether the other end of a connection may send this message.
bool ControlChannel::is_sound(const Message& message, std::size_t connection) const {
  const auto rank = static_cast<std::size_t>(message.rank);
  if (is_hub() ? rank != connection : message.rank >= options_.size) {
    return false;
  }
  switch (message.type) {
    case Type::Stop:
      return is_hub();
    case Type::Begun:
    case Type::Spent:
      return is_hub() && message.value >= 0;
    case Type::Bye:
      return message.value >= 0;
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

void ControlChannel::lost(std::size_t connection, const char* why) {
  if (closing_) {
    return;
  }
  const int rank = is_hub() ? static_cast<int>(connection) : 0;
  const Message message{
      Type::Failed, rank, static_cast<std::int64_t>(ErrorKind::PeerLost), name_of(rank) + why};
  if (is_hub()) {
    to_others(message);
  }
  take_failure(message, true);
}

// Sends a message. If the other end is gone or no longer reads, shuts down the connection; serve()
// then reports the loss.
void ControlChannel::send(std::size_t connection, const Message& message) {
  const std::lock_guard lock(send_mutex_);
  const Socket& socket = met_.sockets[connection];
  if (socket.is_open() && !wire::send(socket, message, options_.send_timeout)) {
    ::shutdown(socket.get(), SHUT_RDWR);
  }
}

void ControlChannel::to_hub(const Message& message) {
  if (is_hub()) {
    handle_at_hub(message);
  } else {
    send(0, message);
  }
}

void ControlChannel::to_others(const Message& message) {
  for (std::size_t i = 1; i < met_.sockets.size(); ++i) {
    send(i, message);
  }
}

void ControlChannel::to_all(const Message& message) {
  to_others(message);
  handle(message);
}

void ControlChannel::handle_at_hub(const Message& message) {
  const std::lock_guard hub(hub_mutex_);
  const auto from = static_cast<std::size_t>(message.rank);
  const auto all_there = [](const auto& list) {
    return std::ranges::all_of(list, [](const auto& entry) { return entry.has_value(); });
  };
  switch (message.type) {
    case Type::Stop:
      if (!std::exchange(asked_, true)) {
        to_all({Type::Ask, 0});
      }
      return;
    case Type::Begun:
    case Type::Bye:  // a worker that has left could not answer a later Ask
      begun_of_[from] = message.value;
      if (all_there(begun_of_) && !std::exchange(decided_, true)) {
        to_all({Type::StopAt, 0, **std::ranges::max_element(begun_of_)});
      }
      return;
    case Type::Vote:
      votes_[from] = message;
      if (all_there(votes_)) {
        const auto worst =
            std::ranges::find_if(votes_, [](const auto& vote) { return vote->value != 0; });
        const std::string_view between(&wire::kBetweenTexts, 1);
        const auto texts =
            mapped(votes_, [&](const auto& vote) { return replaced(vote->text, between, " "); });
        Message result =
            worst != votes_.end() ? **worst : Message{Type::Vote, 0, 0, join(texts, between)};
        if (result.text.size() > wire::kMaxVerdictLength) {
          result = {
              Type::Vote, 0, static_cast<std::int64_t>(ErrorKind::Config),
              formatted(
                  "the votes of {} workers take {} bytes together; expected at most {}",
                  options_.size, result.text.size(), wire::kMaxVerdictLength)};
        }
        result.type = Type::Verdict;
        std::ranges::fill(votes_, std::nullopt);
        if (result.value != 0) {
          closing_ = true;  // workers that receive the error may exit before this one
        }
        to_all(result);
      }
      return;
    case Type::Spent:
      // Messages of other lengths or values are nonsense; ignoring them does no harm.
      if (const auto spent =
              wire::read_as<std::array<double, sizeof(Spent) / sizeof(double)>>(message.text);
          message.text.size() == sizeof(Spent) &&
          std::ranges::all_of(*spent, [](double s) { return std::isfinite(s); })) {
        Control::post(message.rank, message.value, std::bit_cast<Spent>(*spent));
      }
      return;
    case Type::Failed:
      to_all(message);
      return;
    default:
      return;
  }
}

void ControlChannel::handle(const Message& message) {
  std::unique_lock lock(mutex_);
  switch (message.type) {
    case Type::Ask: {
      holding_ = true;
      const Message answer{Type::Begun, options_.rank, begun_};
      lock.unlock();
      to_hub(answer);
      return;
    }
    case Type::StopAt:
      stop_at_ = message.value;
      break;
    case Type::Verdict:
      if (message.value != 0) {
        closing_ = true;
      }
      verdict_ = message;
      break;
    case Type::Shared:
      shared_.push_back(message.text);
      break;
    case Type::Failed:
      lock.unlock();
      take_failure(message, false);
      return;
    default:
      return;
  }
  changed_.notify_all();
}

void ControlChannel::take_failure(const Message& message, bool is_gone) {
  if (message.rank == options_.rank) {
    return;  // the worker knows its own failure
  }
  const auto cause = error_of(message.value, message.text);
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || !failure_.set(cause)) {
      return;  // at the end of the run, or an echo of an earlier failure
    }
    gone_ = is_gone ? message.rank : -1;
    changed_.notify_all();
  }
  if (options_.on_failure) {
    options_.on_failure(cause, gone_);
  }
}

}  // namespace abtrain::comm
