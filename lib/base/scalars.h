// Converts the scalars of a configuration from text to numbers and back. Octal, hexadecimal and
// infinite numbers are rejected.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/duration.h"

namespace abtrain {

// Returns whether the whole text is a number by the rules of std::from_chars; if so, stores it in
// `out`.
template <class Number>
bool read_number(std::string_view text, Number& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
}

// Each of these functions sets `out` and returns true, or returns false and
// leaves `out` unchanged; it may then set `why` to a remark for the message.
// Integer: std::int64_t or std::uint64_t.
template <class Integer>
bool parse_integer(const std::string& text, Integer& out, std::string& why);
bool parse_number(const std::string& text, double& out, std::string& why);
// `110`, `110 steps`, `1 epoch`, `0.5 epochs`, `5 %`. Steps must be integers.
bool parse_duration(const std::string& text, Duration& out, std::string& why);

// A number of bytes, at least 1: `20MB`, `1.5 GiB`, `4096`. kB, MB and GB are
// powers of 1000; KiB, MiB and GiB are powers of 1024.
bool parse_bytes(const std::string& text, std::uint64_t& out, std::string& why);

// The shortest text that reads back to the same value.
std::string print_number(double value);
std::string print_duration(const Duration& value);
// A YAML scalar that every YAML reader takes for a string; quoted where needed.
std::string print_text(const std::string& text);

}  // namespace abtrain
