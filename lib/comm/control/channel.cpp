#include "comm/control/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "comm/control/state.h"

namespace abtrain::comm {

using wire::Message;
using wire::Type;

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
  s.changed.wait(lock, [&] { return !s.holding || s.stop_at >= 0 || s.failure.happened(); });
  s.failure.throw_if_happened();
  if (s.stop_at >= 0 && t >= s.stop_at) {
    return true;
  }
  s.begun = std::max(s.begun, t + 1);
  return false;
}

void ControlChannel::post(int, std::int64_t steps, const Spent& spent) {
  state_->to_hub({Type::Spent, state_->options.rank, steps, wire::bytes_of(spent)});
}

AllSpent ControlChannel::spent() {
  const std::lock_guard hub(state_->hub_mutex);
  return state_->board.latest();
}

std::vector<std::string> ControlChannel::agree(std::exception_ptr mine, const std::string& text) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  const std::int64_t before = s.verdicts;
  lock.unlock();
  const bool failed = mine != nullptr;
  s.to_hub(
      {Type::Vote, s.options.rank, failed ? exit_code_of(mine) : 0,
       failed ? message_of(mine) : text});
  lock.lock();
  s.changed.wait(lock, [&] { return s.verdicts > before || s.failure.happened(); });
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
      formatted(
          "{}: {}", s.is_hub() ? s.name_of(verdict.rank) : formatted("worker {}", verdict.rank),
          verdict.text)));
}

void ControlChannel::share(void* data, std::size_t bytes) {
  ABT_ASSERT(bytes <= wire::kMaxTextLength, "share of {} bytes", bytes);
  State& s = *state_;
  if (s.is_hub()) {
    s.to_hub({Type::Shared, 0, 0, {static_cast<char*>(data), bytes}});
    return;
  }
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] { return !s.shared.empty() || s.failure.happened(); });
  if (s.shared.empty()) {
    s.failure.throw_if_happened();
  }
  const std::string text = std::move(s.shared.front());
  s.shared.pop_front();
  ABT_CHECK(
      text.size() == bytes, Config, "worker {} expected {} bytes from worker 0, got {}",
      s.options.rank, bytes, text.size());
  std::memcpy(data, text.data(), bytes);
}

void ControlChannel::fail(const std::exception_ptr& cause) noexcept {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->failure.happened()) {
      return;
    }
    state_->closing = true;  // the others end now; that is no failure
  }
  try {
    state_->to_hub(
        {Type::Failed, state_->options.rank, exit_code_of(cause),
         formatted("worker {} on {}: {}", state_->options.rank, host_name(), message_of(cause))});
  } catch (...) {
    // The end of the connection will tell the others.
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
    s.post(0, {Type::Bye, s.options.rank, begun});
    return;
  }
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] {
    return s.failure.happened() || std::count(s.left.begin() + 1, s.left.end(), false) == 0;
  });
  s.closing = true;
}

}  // namespace abtrain::comm
