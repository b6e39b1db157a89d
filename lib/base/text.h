// Text functions: build, split and compare strings, print numbers for people.
#pragma once

#include <fmt/base.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace abtrain {

std::string fill_text(fmt::string_view text, fmt::format_args parts);

// formatted("{} of {:.2f}", n, x): the parts take the places of the {}, by the rules of {fmt},
// which the compiler checks. An empty {} shows a floating-point number with six significant digits,
// but a whole number with all digits. A part may have a name: fmt::arg("n", n) takes the place of
// each {n}. The function is not called `format`, because argument-dependent lookup would find
// std::format instead.
template <class... T>
std::string formatted(fmt::format_string<T...> text, const T&... parts) {
  return fill_text(text.get(), fmt::vargs<T...>{{parts...}});
}

// The text with each `from` replaced by `to`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);
// In double quotes, with a backslash before each " and each backslash.
std::string in_quotes(const std::string& text);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
// "a", "a and b", "a, b and c"
std::string listed(const std::vector<std::string>& parts);
std::vector<std::string> split_text(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string lower_case(std::string_view text);  // ASCII letters only
// Wraps a text into lines of at most `columns` bytes, joined by newlines; a longer word has a line
// of its own.
std::string wrapped(std::string_view text, std::size_t columns);

// Whether a byte of UTF-8 text is the first of its character.
constexpr bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}
// The length in bytes of the UTF-8 character that `text` begins with, or 0 if
// it does not begin with a valid one (truncated, overlong, beyond Unicode, half
// of a surrogate pair). `text` must not be empty.
std::size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

// Makes text from files safe to show on a terminal. Control characters, bytes that are not UTF-8
// and marks that change the direction of text are escaped as \n, \t or \xNN. Characters in `keep`
// stay.
std::string printable(std::string_view text, std::string_view keep = "");

// Matches a whole name as a shell does: '*' stands for any run of characters,
// '?' for any one character, [abc] for any one of these.
bool glob_match(const std::string& pattern, const std::string& name);

// The candidate with the smallest edit distance to `name`, or "" if none is close enough.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

// 1234567 -> "1,234,567"; bytes in powers of 1000, as rates are: "17.3 MB".
std::string with_commas(std::int64_t value);
std::string human_bytes(double bytes);
// Seconds as "0.8 s", "42 s", "3 min 12 s", "2 h 05 min".
std::string human_seconds(double seconds);

}  // namespace abtrain
