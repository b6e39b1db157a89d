// Monotonic time in seconds; date and time as text.
#pragma once

#include <array>
#include <chrono>
#include <ctime>
#include <string>

namespace abtrain {

class Stopwatch {
 public:
  // `already`: the seconds that the stopwatch shows at the start.
  explicit Stopwatch(double already = 0)
      : begin_(
            Clock::now() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                               std::chrono::duration<double>(already))) {}
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  // Returns the seconds so far and starts again from zero.
  double restart() {
    const auto now = Clock::now();
    const std::chrono::duration<double> span = now - begin_;
    begin_ = now;
    return span.count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
};

// The present time in UTC, such as "2026-11-24T18:39:20Z". `format`: as for strftime, and must
// yield at most 31 characters. Thread-safe.
inline std::string utc_now(const char* format = "%FT%TZ") {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), format, &parts);
  return text.data();
}

}  // namespace abtrain
