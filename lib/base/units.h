// Rates and times as people write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace abtrain {

// Bits a second of "1Gbit", "100 Mbit/s", "2.5GB/s": decimal k, M, G, T, in
// either case; bit (also b, bps) or B (bytes). Nothing for what is no rate
// above 0.
std::optional<double> parse_rate(std::string_view text);

// Seconds of "50us", "1.5 ms", "2s", "3 min"; of at least 0, finite.
std::optional<double> parse_seconds(std::string_view text);

// "100 Mbit/s", "50 us".
std::string rate_text(double bits_per_second);
std::string short_time_text(double seconds);

}  // namespace abtrain
