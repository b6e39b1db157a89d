#include "comm/control/channel.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"

namespace abtrain::comm {

using wire::Message;
using wire::Type;

namespace {

constexpr double kTellAfter = 2;  // seconds until options_.waiting is called
// The other workers wait this many seconds longer than worker 0: only it can name the missing
// workers.
constexpr double kLead = 10;
// How long the other workers wait for worker 0 to write the report of a run.
constexpr std::chrono::minutes kReport{10};

}  // namespace

// Returns the workers that have not voted. Only worker 0 knows them; every other worker waits for
// worker 0 alone.
std::vector<int> ControlChannel::missing() {
  if (!is_hub()) {
    return {0};
  }
  const std::lock_guard hub(hub_mutex_);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < votes_.size(); ++rank) {
    if (!votes_[rank]) {
      ranks.push_back(static_cast<int>(rank));
    }
  }
  return ranks;
}

void ControlChannel::wait_for_others(
    std::unique_lock<std::mutex>& lock, const std::function<bool()>& came) {
  const double seconds = patience_ + (is_hub() ? 0 : kLead);
  const Deadline deadline(seconds);
  const auto wait = [&](double at_most) {
    return changed_.wait_for(lock, std::chrono::duration<double>(at_most), came);
  };
  if (wait(std::min(kTellAfter, seconds))) {
    return;
  }
  lock.unlock();
  options_.waiting(join(mapped(missing(), [&](int rank) { return name_of(rank); }), ", "));
  lock.lock();
  const bool in_time = wait(deadline.seconds_left());
  lock.unlock();
  options_.waiting("");
  if (!in_time) {
    throw TimedOut("agreement of all workers", seconds, missing());
  }
  lock.lock();
}

bool ControlChannel::stop_before(int, std::int64_t t) {
  std::unique_lock lock(mutex_);
  begun_ = std::max(begun_, t);
  if (!asked_for_stop_ && stop_at_ < 0 && options_.wanted()) {
    asked_for_stop_ = true;
    lock.unlock();
    to_hub({Type::Stop, options_.rank});
    lock.lock();
  }
  changed_.wait(lock, [&] { return !holding_ || stop_at_ >= 0 || failure_.happened(); });
  failure_.throw_if_happened();
  if (stop_at_ >= 0 && t >= stop_at_) {
    return true;
  }
  begun_ = std::max(begun_, t + 1);
  return false;
}

void ControlChannel::post(int, std::int64_t steps, const Spent& spent) {
  to_hub({Type::Spent, options_.rank, steps, wire::bytes_of(spent)});
}

std::vector<std::string> ControlChannel::agree(std::exception_ptr mine, const std::string& text) {
  const bool failed = mine != nullptr;
  ABT_ASSERT(failed || text.size() <= wire::kMaxTextLength, "agree of {} bytes", text.size());
  to_hub(
      {Type::Vote, options_.rank, failed ? exit_code_of(mine) : 0,
       failed ? message_of(mine) : text});
  std::unique_lock lock(mutex_);
  wait_for_others(lock, [&] { return verdict_ || failure_.happened(); });
  if (!verdict_) {  // a failure after the verdict concerns later calls
    failure_.throw_if_happened();
  }
  const Message verdict = *std::exchange(verdict_, std::nullopt);
  lock.unlock();
  if (verdict.value == 0) {
    return split_text(verdict.text, wire::kBetweenTexts);
  }
  if (verdict.rank == options_.rank) {
    std::rethrow_exception(mine);
  }
  std::rethrow_exception(error_of(
      verdict.value,
      formatted(
          "{}: {}", is_hub() ? name_of(verdict.rank) : formatted("worker {}", verdict.rank),
          verdict.text)));
}

void ControlChannel::share(void* data, std::size_t bytes) {
  ABT_ASSERT(bytes <= wire::kMaxTextLength, "share of {} bytes", bytes);
  if (is_hub()) {
    to_others({Type::Shared, 0, 0, {static_cast<char*>(data), bytes}});
    return;
  }
  std::unique_lock lock(mutex_);
  wait_for_others(lock, [&] { return !shared_.empty() || failure_.happened(); });
  if (shared_.empty()) {
    failure_.throw_if_happened();
  }
  const std::string text = std::move(shared_.front());
  shared_.pop_front();
  ABT_CHECK(
      text.size() == bytes, Config, "worker {} expected {} bytes from worker 0, got {}",
      options_.rank, bytes, text.size());
  std::memcpy(data, text.data(), bytes);
}

void ControlChannel::fail(const std::exception_ptr& cause) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.happened()) {
      return;
    }
    closing_ = true;  // the other workers end now, which is no failure
  }
  try {
    to_hub(
        {Type::Failed, options_.rank, exit_code_of(cause),
         formatted("worker {} on {}: {}", options_.rank, host_name(), message_of(cause))});
  } catch (...) {
    // The end of the connection will tell the others.
  }
}

void ControlChannel::close() noexcept {
  std::unique_lock lock(mutex_);
  if (is_hub()) {
    changed_.wait_for(lock, std::chrono::duration<double>(patience_), [&] {
      return failure_.happened() || std::count(left_.begin() + 1, left_.end(), false) == 0;
    });
  }
  closing_ = true;
  const Message bye{Type::Bye, options_.rank, begun_};
  lock.unlock();
  if (is_hub()) {
    to_others(bye);
  } else {
    send(0, bye);
  }
}

void ControlChannel::wait_for_all() noexcept {
  if (!is_hub()) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kReport, [&] { return left_[0] || failure_.happened(); });
  }
}

}  // namespace abtrain::comm
