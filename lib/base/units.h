// Rates and times as people write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace abtrain {

// Bits per second of a rate such as "1Gbit", "100 Mbit/s" or "2.5GB/s": decimal
// k, M, G or T, in either case; then bit (also b, bps) or B (bytes). Empty if
// the text is not a rate above 0.
std::optional<double> parse_rate(std::string_view text);

// Seconds of a time such as "50us", "1.5 ms", "2s" or "3 min". Empty if the
// text is not a finite time of at least 0.
std::optional<double> parse_seconds(std::string_view text);

// "100 Mbit/s", "50 us".
std::string rate_text(double bits_per_second);
std::string short_time_text(double seconds);

}  // namespace abtrain
