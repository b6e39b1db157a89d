#include "comm/control/control.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"

namespace abtrain::comm {

namespace {

// More rows are never needed: workers are at most one synchronization apart, and post fewer times
// than this between two synchronizations.
constexpr std::size_t kMaxRows = 1024;

}  // namespace

void Control::post(int worker, std::int64_t steps, const Spent& spent) {
  const std::lock_guard lock(spent_mutex_);
  if (steps <= latest_.steps) {
    return;
  }
  auto& row = rows_[steps];
  row.resize(workers_);
  row.at(static_cast<std::size_t>(worker)) = spent;
  if (std::ranges::all_of(row, [](const auto& entry) { return entry.has_value(); })) {
    latest_ = {steps, mapped(row, [](const auto& entry) { return *entry; })};
    rows_.erase(rows_.begin(), rows_.upper_bound(steps));
  } else if (rows_.size() > kMaxRows) {
    rows_.erase(rows_.begin());
  }
}

LocalControl::LocalControl(int workers, std::function<bool()> wanted)
    : Control(workers),
      taken_(static_cast<std::size_t>(workers)),
      wanted_(std::move(wanted)),
      begun_(static_cast<std::size_t>(workers)) {}

void LocalControl::share(
    int worker, void* data, std::size_t bytes, const std::function<void()>& check) {
  constexpr std::chrono::milliseconds kCheckEvery{20};
  std::unique_lock lock(mutex_);
  std::size_t& taken = taken_[static_cast<std::size_t>(worker)];
  if (worker == 0) {
    texts_.emplace_back(static_cast<const char*>(data), bytes);
    shared_.notify_all();
  }
  while (!shared_.wait_for(lock, kCheckEvery, [&] { return taken < texts_.size(); })) {
    lock.unlock();
    check();
    lock.lock();
  }
  const std::string& text = texts_[taken++];
  ABT_ASSERT(text.size() == bytes, "share of {} bytes, expected {}", text.size(), bytes);
  std::memcpy(data, text.data(), bytes);
}

bool LocalControl::stop_before(int worker, std::int64_t t) {
  const std::lock_guard lock(mutex_);
  auto& begun = begun_[static_cast<std::size_t>(worker)];
  begun = std::max(begun, t);
  if (stop_at_ < 0 && wanted_()) {
    // No worker has begun more steps than this, so all can still reach it and none has passed it.
    stop_at_ = *std::max_element(begun_.begin(), begun_.end());
  }
  if (stop_at_ >= 0 && t >= stop_at_) {
    return true;
  }
  begun = t + 1;
  return false;
}

}  // namespace abtrain::comm
