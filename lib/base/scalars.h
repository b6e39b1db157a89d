// Scalars of a configuration: text to number and back, without surprises
// (no octal, no hexadecimal, nothing infinite).
#pragma once

#include <cstdint>
#include <string>

#include "base/duration.h"

namespace abtrain {

// Each sets `out` and returns true, or leaves it, puts a remark for the
// message into `why` (possibly empty) and returns false.
bool parse_integer(
    const std::string& text,
    std::int64_t& out,
    std::string& why);
bool parse_integer(
    const std::string& text,
    std::uint64_t& out,
    std::string& why);
bool parse_number(const std::string& text, double& out, std::string& why);
// `110`, `110 steps`, `1 epoch`, `0.5 epochs`, `5 %`; steps are whole.
bool parse_duration(const std::string& text, Duration& out, std::string& why);

// `20MB`, `1.5 GiB`, `4096`: bytes; kB, MB, GB are powers of 1000, KiB, MiB, GiB
// of 1024. At least 1.
bool parse_bytes(const std::string& text, std::uint64_t& out, std::string& why);

// The shortest text that reads back to the same value.
std::string print_number(double value);
std::string print_duration(const Duration& value);
// As a YAML scalar that any YAML reader takes for text; quoted where needed.
std::string print_text(const std::string& text);

}  // namespace abtrain
